#!/bin/bash
# An array of eight jobs with one GPU each, on a partition that may take its machines back.
#
#     sbatch examples/slurm/gpu_array.sh
#
# All jobs write to one store. They do not talk to each other and may start in any order, or one after another.
#SBATCH --job-name=resonance
#SBATCH --array=1-8
#SBATCH --gres=gpu:1
#SBATCH --cpus-per-task=4
#SBATCH --mem=16G
#SBATCH --time=04:00:00
#SBATCH --requeue                 # preempted: put it back into the queue, --resume below goes on
#SBATCH --signal=TERM@60          # a minute before the time is over; what is finished is stored anyway
#SBATCH --open-mode=append
#SBATCH --output=resonance-%A-%a.log

source .venv/bin/activate

# --shard: every eighth chunk, counted from 1 as the array is.
# --resume: the first start finds no store, or one that another shard began; later ones go on.
# --max-minutes: a little less than --time; the job then stops with exit code 75.
# exec: SIGTERM reaches the program and not the shell.
exec srun resonance run examples/mlp_sweep.py --scale large --out "$SCRATCH/mlp.zarr" \
    --shard "$SLURM_ARRAY_TASK_ID/$SLURM_ARRAY_TASK_COUNT" --resume --max-minutes 235

# Exit code 75 means: start again. A wrapper without `exec` could do it here:
#     [ $? -eq 75 ] && scontrol requeue "$SLURM_JOB_ID"
# From any machine that sees the store: resonance status "$SCRATCH/mlp.zarr"
