#!/bin/bash
# One job on two nodes with four GPUs each: one process on each node, which works with all four.
#
#     sbatch examples/slurm/multi_node.sh
#
# Prefer the array where you can: its jobs start as soon as one GPU is free, and one that dies takes no other with it.
#SBATCH --job-name=resonance-nodes
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gres=gpu:4
#SBATCH --cpus-per-task=16
#SBATCH --mem=64G
#SBATCH --time=04:00:00
#SBATCH --requeue
#SBATCH --signal=TERM@60
#SBATCH --open-mode=append
#SBATCH --output=resonance-%j.log

source .venv/bin/activate

# --distributed: jax finds the processes from SLURM's variables; each takes every second chunk, shared by its four GPUs.
# Under mpirun it is the same command. Elsewhere start one process on each host with
#     --coordinator FIRST_HOST:12345 --num-processes 2 --process-id 0   (1 on the second)
exec srun resonance run examples/mlp_sweep.py --scale large --out "$SCRATCH/mlp_nodes.zarr" \
    --distributed --resume --max-minutes 235
