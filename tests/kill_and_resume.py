"""Kill a job at random moments, resuming it each time: the store ends bit-identical, with at most one chunk redone.

`python tests/kill_and_resume.py --kills 50`. Each job is a child process, forked after the imports to be quick.
"""

import argparse
import os
import random
import signal
import sys
import tempfile
import time
import warnings
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import resonance_jax as rj
from resonance_jax.engine import programs
from resonance_jax.engine.grid import Grid
from resonance_jax.engine.shapes import Index
from resonance_jax.jobs.store import Store

NUM_CHUNKS = 60


def point(x, y):
    """About twenty milliseconds of work for each chunk."""
    return {"z": jax.lax.fori_loop(0, 4000, lambda _, z: jnp.sin(z + y), x), "n": jnp.round(x).astype(jnp.int32)}


def axes() -> dict[str, np.ndarray]:
    return {"x": np.linspace(0.0, 30.0, NUM_CHUNKS), "y": np.linspace(0.0, 1.0, 500)}


def child(out: Path, log: Path) -> None:
    """One job that logs each chunk before it computes it."""
    sys.stdout = open(os.devnull, "w")  # noqa: SIM115
    run = programs.run

    def counted(program: programs.Program, grid: Grid, index: Index) -> list[np.ndarray]:
        with open(log, "a") as file:
            file.write(f"{index[0].start}\n")
        return run(program, grid, index)

    programs.run = counted
    rj.sweep(point, axes(), store=out, resume=True, chunk=500)


def start(out: Path, log: Path) -> int:
    pid = os.fork()
    if pid == 0:
        try:
            child(out, log)
            os._exit(0)
        except BaseException as error:
            print(error, file=sys.stderr)
            os._exit(1)
    return pid


def computed(log: Path) -> list[int]:
    return [int(line) for line in log.read_text().splitlines()] if log.exists() else []


def files(out: Path) -> dict[str, bytes]:
    """The data files of a store."""
    found = sorted(file for name in ("z", "n", "status") for file in (out / name / "c").rglob("*") if file.is_file())
    return {str(file.relative_to(out)): file.read_bytes() for file in found}


def finished(out: Path) -> int:
    if not out.exists():
        return 0
    store = Store.open(out)
    return sum(store.read_status(number) is not None for number in range(store.num_chunks))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore", message=".*os.fork")  # JAX does not run in the parent
    moments = random.Random(arguments.seed)
    jax.config.update("jax_num_cpu_devices", 1)
    with tempfile.TemporaryDirectory() as folder:
        undisturbed, killed = Path(folder) / "undisturbed.zarr", Path(folder) / "killed.zarr"
        log = Path(folder) / "log"
        assert os.waitpid(start(undisturbed, log), 0)[1] == 0
        expected = files(undisturbed)
        assert computed(log) == list(range(NUM_CHUNKS))

        again = kills = rounds = 0
        while kills < arguments.kills:
            rounds += 1
            log.unlink()
            done = 0
            while done < NUM_CHUNKS:
                before = len(computed(log))
                pid = start(killed, log)
                if kills < arguments.kills:
                    in_the_work = moments.random() > 0.2  # the others hit the start of the job
                    while in_the_work and len(computed(log)) == before:
                        time.sleep(0.002)
                    time.sleep(moments.uniform(0, 0.1))
                    os.kill(pid, signal.SIGKILL)
                status = os.waitpid(pid, 0)[1]
                assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0, status
                kills += os.WIFSIGNALED(status)
                now = finished(killed)
                lost = len(computed(log)) - before - (now - done)
                assert 0 <= lost <= 1, f"{lost} chunks lost by one kill"
                again += lost
                done = now
            assert files(killed) == expected, "the store differs from that of an undisturbed job"
            for name in ("z", "n", "status"):
                assert not list((killed / name).rglob("*.partial")), "a killed job left files behind"
            os.rename(killed, Path(folder) / f"round{rounds}")
        print(f"{kills} kills in {rounds} rounds of {NUM_CHUNKS} chunks: bit-identical, {again} chunks done twice")
    return 0


if __name__ == "__main__":
    sys.exit(main())
