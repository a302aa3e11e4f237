"""Which jobs wrote to a store, and how each ended: finished, stopped, failed, killed, or not yet."""

import contextlib
import secrets
import time
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, NamedTuple, Protocol

from resonance_jax.jobs.identity import now
from resonance_jax.jobs.shards import Shard
from resonance_jax.jobs.store import Store

ENDS = {"end": "finished", "stopped": "stopped", "failed": "failed"}  # event in the log -> state of the job


class Ending(Protocol):
    """Writes into the log how a job ended; only the first call counts."""

    def __call__(self, event: str, **facts: Any) -> None: ...


class Job(NamedTuple):
    """One job in the history of a store."""

    state: str  # running, finished, stopped, failed or killed
    began: str  # date and time
    host: str
    device: str
    shard: Shard
    chunks: int  # it had to compute
    seconds: float | None  # of computing and storing, if it finished
    reason: str  # why it stopped or failed


def new_token() -> int:
    """A number for a job, far beyond those of chunks. The job locks it, and the lock ends with its process."""
    return secrets.randbits(30) + 2**40


@contextlib.contextmanager
def kept(store: Store, token: int, entry: Mapping[str, Any]) -> Iterator[Ending]:
    """Keep a job in the log of its store, from its start to its end.

    A job that is killed cannot write how it ended: its start is in the log, and its token is no longer locked.
    """
    named = {"token": token, **entry}
    ended = False

    def ending(event: str, **facts: Any) -> None:
        nonlocal ended
        if not ended:
            ended = True
            store.log({"event": event, "time": now(), **named, **facts})

    store.log({"event": "start", "time": now(), **named})
    try:
        yield ending
    except KeyboardInterrupt:
        ending("stopped", reason="KeyboardInterrupt")
        raise
    except BaseException as error:
        with contextlib.suppress(OSError):  # a full disk may be the error
            ending("failed", reason=type(error).__name__)
        raise


def jobs(store: Store) -> list[Job]:
    """The jobs of a store, in the order in which they began."""
    entries = [entry for entry in store.jobs() if "token" in entry]
    ends = {entry["token"]: entry for entry in entries if entry.get("event") in ENDS}
    found = []
    for start in entries:
        if start.get("event") == "start":
            end = ends.get(start["token"], {})
            left_open = "running" if not end and store.is_locked(start["token"]) else "killed"
            found.append(
                Job(
                    ENDS.get(end.get("event", ""), left_open),
                    str(start.get("time")),
                    str(start.get("host")),
                    str(start.get("device")),
                    Shard(*start.get("shard", ())),
                    int(start.get("chunks", 0)),
                    end.get("seconds"),
                    str(end.get("reason", "")),
                )
            )
    return found


def seconds_left(store: Store, running: list[Job]) -> float | None:
    """Estimate of the time until all chunks are there, at the pace since the running jobs began; None: no chunk yet."""
    if not running:
        return None
    began = min(datetime.fromisoformat(job.began).timestamp() for job in running)
    times = [store.finished_at(number) for number in range(store.num_chunks)]
    done = sum(moment is not None and moment > began for moment in times)
    missing = times.count(None)
    return missing * (time.time() - began) / done if done else None
