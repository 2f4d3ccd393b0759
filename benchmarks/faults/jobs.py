"""The laboratory's handlers. Each records its runs in the ledger and returns its fence."""

from __future__ import annotations

import ctypes
import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from django.db import connection

from benchmarks.faults.ledger import Ledger, What, recorded
from jobqueue import Discard, Fixed, JobContext, Retry, Snooze, backends, job
from jobqueue.api.handler import Handler
from jobqueue.clock import SYSTEM

#: More attempts than a laboratory uses, so that a dead letter means an error of the queue.
MANY = 1_000
#: 2 GB, several times the limit of the laboratory's control group.
MOST_EATEN = 250
#: Seconds between two signs of life.
PULSE = 0.05

Told = dict[str, int]


def _told(ctx: JobContext) -> Told:
    return {"fence": ctx.fence}


def _live(ctx: JobContext, ledger: Ledger, seconds: float) -> None:
    """Work for some time, with signs of life."""
    end = SYSTEM.monotonic() + seconds
    while (left := end - SYSTEM.monotonic()) > 0:
        time.sleep(min(PULSE, left))
        ledger.note(What.SEEN, ctx.job_id, ctx.fence)


@job(retry=Fixed(0), max_retries=MANY)
def short(ctx: JobContext, seconds: float) -> Told:
    """Take some milliseconds, like most handlers."""
    with recorded(ctx):
        time.sleep(seconds)
        return _told(ctx)


@job(retry=Fixed(0), max_retries=MANY)
def long(ctx: JobContext, seconds: float) -> Told:
    """Take longer than a lease."""
    with recorded(ctx) as ledger:
        _live(ctx, ledger, seconds)
        return _told(ctx)


@job(retry=Fixed(0), max_retries=MANY)
def patient(ctx: JobContext, seconds: float) -> Told:
    """Work in steps with progress reports, and stop at the next step when asked to."""
    with recorded(ctx) as ledger:
        for step in range(10):
            ctx.checkpoint()
            ctx.progress(10 * step, fence=ctx.fence)
            _live(ctx, ledger, seconds / 10)
        return _told(ctx)


@job(retry=Fixed(0), max_retries=MANY)
def deaf(ctx: JobContext, seconds: float) -> Told:
    """Ignore all requests to stop."""
    with recorded(ctx) as ledger:
        end = SYSTEM.monotonic() + seconds
        while SYSTEM.monotonic() < end:
            with suppress(BaseException):
                _live(ctx, ledger, end - SYSTEM.monotonic())
        return _told(ctx)


@job(retry=Fixed(0), max_retries=MANY, timeout=60)
def hog(ctx: JobContext, seconds: float) -> Told:
    """Hold the interpreter's lock in one C call."""
    with recorded(ctx):
        ctypes.PyDLL(None).usleep(int(seconds * 1_000_000))
        return _told(ctx)


def _die_once(ctx: JobContext) -> None:
    """Kill this process at this job's first run."""
    mark = Path(f"{Ledger.of_this_process().path}-{ctx.job_id}-died")
    with suppress(FileExistsError):
        os.close(os.open(mark, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        os.kill(os.getpid(), signal.SIGKILL)


@job(retry=Fixed(0), max_retries=MANY)
def die_after_effect(ctx: JobContext) -> Told:
    """Die once, after the effect but before it is reported."""
    with recorded(ctx):
        pass
    _die_once(ctx)
    return _told(ctx)


@job(atomic=True, retry=Fixed(0), max_retries=MANY)
def die_before_commit(ctx: JobContext) -> Told:
    """Die once, after the effect is written but before it is committed."""
    with recorded(ctx):
        _write_effect(ctx)
        _die_once(ctx)
        return _told(ctx)


@job(atomic=True, retry=Fixed(0), max_retries=MANY)
def die_after_commit(ctx: JobContext) -> Told:
    """Die once, after effect and completion are committed but before that is reported."""
    with recorded(ctx):
        _write_effect(ctx)
        backends.current().on_commit(lambda: _die_once(ctx))
        return _told(ctx)


def _write_effect(ctx: JobContext) -> None:
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO laboratory_effect (job_id) VALUES (%s)", [ctx.job_id])


def _never_end() -> None:
    while True:
        with suppress(BaseException):
            time.sleep(1)


POISONS: dict[str, Callable[[], object]] = {
    "segfault": lambda: ctypes.string_at(0),
    "os._exit": lambda: os._exit(3),
    "abort": os.abort,
    "killed": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "never ends": _never_end,
}


@job(retry=Fixed(0), max_retries=2, timeout=2)
def harm(ctx: JobContext, which: str) -> None:
    """Do something harmful."""
    with recorded(ctx):
        POISONS[which]()


@job(retry=Fixed(0), max_retries=2, timeout=1)
def endless(ctx: JobContext, in_c: bool) -> None:
    """Never end, by means that keep the process alive."""
    with recorded(ctx):
        signal.pthread_sigmask(signal.SIG_BLOCK, set(signal.Signals))
        while in_c:
            ctypes.PyDLL(None).usleep(1_000_000_000)
        _never_end()


@job(retry=Fixed(0), max_retries=2)
def glutton(ctx: JobContext) -> None:
    """Use up all memory. Without a limit for the process, end before the machine runs short."""
    with recorded(ctx):
        kept: list[bytes] = []
        while len(kept) < MOST_EATEN:
            kept.append(b"x" * 8_000_000)
        os.kill(os.getpid(), signal.SIGKILL)


@job(retry=Fixed(0), max_retries=MANY)
def late(ctx: JobContext, verb: str, gate: str) -> Told:
    """Wait at a gate in the first run and end as ``verb`` says; just take a while in later runs."""
    with recorded(ctx) as ledger:
        if ctx.fence > 1:
            _live(ctx, ledger, 2.0)
            return _told(ctx)
        while not Path(gate).exists():
            time.sleep(0.005)
        if error := LATE_ENDS.get(verb):
            raise error()
        if verb == "progress":
            ctx.progress(77, fence=ctx.fence)
            time.sleep(0.3)  # reports are sent ten times a second
        return _told(ctx)


LATE_ENDS: dict[str, Callable[[], Exception]] = {
    "failure": lambda: RuntimeError("late"),
    "snooze": lambda: Snooze(0, "late"),
    "retry": lambda: Retry(0, "late"),
    "discard": lambda: Discard("late"),
}
LATE_VERBS = (*LATE_ENDS, "completion", "progress")


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of job for producers: its handler, its random payload, and how it must end."""

    handler: Handler[..., Any, ...]
    payload: Callable[[Random], dict[str, Any]]
    expects: str = "completed"


def _between(shortest: float, longest: float) -> Callable[[Random], dict[str, Any]]:
    return lambda rng: {"seconds": round(rng.uniform(shortest, longest), 4)}


def _nothing(_: Random) -> dict[str, Any]:
    return {}


KINDS: dict[str, Kind] = {
    "short": Kind(short, _between(0.001, 0.05)),
    "long": Kind(long, _between(1, 4)),
    "lasting": Kind(long, _between(8.5, 9)),
    "patient": Kind(patient, _between(0.5, 2)),
    "deaf": Kind(deaf, _between(1, 3)),
    "hog": Kind(hog, _between(2, 6)),
    "die_after_effect": Kind(die_after_effect, _nothing),
    "die_before_commit": Kind(die_before_commit, _nothing),
    "die_after_commit": Kind(die_after_commit, _nothing),
    "late": Kind(late, _nothing),
    "endless": Kind(endless, lambda rng: {"in_c": rng.random() < 0.5}, expects="dead_letter"),
    "glutton": Kind(glutton, _nothing, expects="dead_letter"),
    "harm": Kind(harm, lambda rng: {"which": rng.choice(sorted(POISONS))}, expects="dead_letter"),
}
