"""Handlers for tests with real workers: they run, wait, misbehave and die."""

from __future__ import annotations

import asyncio
import ctypes
import fcntl
import os
import re
import resource
import signal
import sys
import time
from decimal import Decimal
from pathlib import Path
from typing import Any, NoReturn

from django.contrib.auth.models import Group

from jobqueue import Fixed, JobContext, Snooze, backends, job
from tests.app.ledger import is_open, note, recorded, wait_at

AT_ONCE = Fixed(0)


@job(retry=AT_ONCE)
def note_run(ctx: JobContext, number: int = 0) -> int:
    """Begin and end."""
    with recorded(ctx):
        return number


@job(retry=AT_ONCE)
def hold(ctx: JobContext, gate: str) -> str:
    """Wait for the test to open a gate; say which attempt it was."""
    with recorded(ctx):
        wait_at(gate)
        return f"fence {ctx.fence}"


@job(retry=AT_ONCE)
def hold_once(ctx: JobContext, gate: str) -> str:
    """Wait for a gate in the first run alone."""
    with recorded(ctx):
        if ctx.fence == 1:
            wait_at(gate)
        return f"fence {ctx.fence}"


@job(retry=AT_ONCE)
def tick(ctx: JobContext, gate: str) -> str:
    """Wait for a gate, and show signs of life."""
    with recorded(ctx):
        while not is_open(gate):
            note("tick", ctx)
            time.sleep(0.02)
        return f"fence {ctx.fence}"


@job(retry=AT_ONCE, timeout=60)
def hold_interpreter(ctx: JobContext, seconds: float, first_only: bool = False) -> str:
    """Keep the interpreter lock in C, so that no other thread of this process runs."""
    with recorded(ctx):
        if ctx.fence == 1 or not first_only:
            ctypes.PyDLL(None).usleep(int(seconds * 1_000_000))
        return f"fence {ctx.fence}"


@job(retry=AT_ONCE, timeout=60)
def keep_interpreter(ctx: JobContext, lock: str) -> None:
    """Keep the interpreter lock in C until somebody lets a file go."""
    with recorded(ctx), Path(lock).open() as file:
        ctypes.PyDLL(None).flock(file.fileno(), fcntl.LOCK_EX)


@job(retry=AT_ONCE)
def backtrack(ctx: JobContext) -> None:
    """Keep the interpreter lock in the engine of regular expressions, for ever as far as a test can tell."""
    with recorded(ctx):
        if ctx.fence == 1:
            re.match(r"(a+)+$", "a" * 64 + "b")


@job(retry=AT_ONCE, max_retries=2)
def stay(ctx: JobContext, gate: str) -> None:
    """Refuse to stop, whatever is raised here."""
    note("start", ctx)
    while not is_open(gate):
        try:
            wait_at(gate)
        except BaseException as error:
            note("refused", ctx, error=type(error).__name__)


@job(retry=AT_ONCE, max_retries=2)
def heed(ctx: JobContext, gate: str) -> None:
    """Stop when told to, by the exception."""
    with recorded(ctx):
        wait_at(gate)


@job(retry=AT_ONCE, max_retries=2)
def ask(ctx: JobContext, gate: str) -> str:
    """Ask whether to stop, inside a stretch that hides the exception, and then leave in order."""
    note("start", ctx)
    while not is_open(gate):
        try:
            while not ctx.should_stop():
                time.sleep(0.005)
            note("heard", ctx)
            ctx.checkpoint()
        except BaseException as error:
            note("caught", ctx, error=type(error).__name__)
            raise
    return "the gate was opened"


@job(retry=AT_ONCE, max_retries=2)
def snore(ctx: JobContext) -> None:
    """Sleep in one call, in which no exception arrives."""
    with recorded(ctx):
        time.sleep(60)


@job(retry=AT_ONCE, max_retries=2)
async def stay_async(ctx: JobContext, gate: str) -> None:
    """Refuse to be cancelled."""
    note("start", ctx)
    while not is_open(gate):
        try:
            await asyncio.sleep(0.01)
        except BaseException as error:
            note("refused", ctx, error=type(error).__name__)


@job(retry=AT_ONCE, max_retries=2)
async def heed_async(ctx: JobContext, gate: str) -> None:
    """Stop when the task is cancelled."""
    with recorded(ctx):
        while not is_open(gate):
            await asyncio.sleep(0.01)


@job(retry=AT_ONCE, lease=2)
def hold_briefly_leased(ctx: JobContext, gate: str) -> str:
    """Wait under a lease of this type's own."""
    with recorded(ctx):
        wait_at(gate)
        return f"fence {ctx.fence}"


class Unspeakable(Exception):
    """Has no words."""

    def __str__(self) -> str:
        raise ValueError("no words")

    __repr__ = __str__


def _allocate() -> None:
    used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()  # noqa: PTH123, SIM115
    resource.setrlimit(resource.RLIMIT_AS, (used + 64_000_000, resource.RLIM_INFINITY))
    try:
        kept = []
        while True:
            kept.append(bytearray(8_000_000))
    finally:
        kept.clear()
        resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


def _run_out() -> NoReturn:
    """Die as the kernel ends a process when there is no memory left."""
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError


def _raise(error: BaseException) -> NoReturn:
    raise error


def _garrulous() -> BaseException:
    error = ValueError("password=x --token y " * 1_500_000)
    error.add_note(str(error))
    error.__cause__ = KeyError(str(error))
    return error


def _fork_and_die() -> None:
    """Die, and leave a child behind that has a copy of everything open here."""
    if os.fork() == 0:
        time.sleep(20)
        os._exit(0)
    os._exit(5)


POISONS: dict[str, Any] = {
    "forks and dies": _fork_and_die,
    "closes all files": lambda: os.closerange(3, 1024),
    "garrulous": lambda: _raise(_garrulous()),
    "long-winded": lambda: _raise(ValueError("password=" + "x" * 5_000_000)),
    "allocate": _allocate,
    "out of memory": _run_out,
    "os._exit": lambda: os._exit(3),
    "os._exit(0)": lambda: os._exit(0),
    "segfault": lambda: ctypes.string_at(0),
    "sys.exit": lambda: sys.exit(4),
    "SystemExit": lambda: _raise(SystemExit("bye")),
    "KeyboardInterrupt": lambda: _raise(KeyboardInterrupt()),
    "GeneratorExit": lambda: _raise(GeneratorExit()),
    "unspeakable": lambda: _raise(Unspeakable()),
    "abort": os.abort,
}


@job(retry=AT_ONCE, max_retries=2)
def poison(ctx: JobContext, which: str) -> None:
    """Do what no handler should do."""
    note("start", ctx)
    POISONS[which]()


@job(retry=AT_ONCE, max_retries=2)
async def poison_async(ctx: JobContext, which: str) -> None:
    """Do it in a coroutine."""
    note("start", ctx)
    await asyncio.sleep(0)
    POISONS[which]()


USELESS: dict[str, Any] = {
    "an object": object(),
    "a set": {1, 2},
    "a decimal number": {"price": Decimal("1.50")},
    "keys that fall together": {1: 1, "1": 2},
    "no number": float("nan"),
    "a NUL": "\0",
    "half a character": "\ud800",
    "too much": "x" * 300_000,
}


@job(retry=AT_ONCE, max_retries=3)
def useless(ctx: JobContext, which: str) -> object:
    """Return what cannot be stored."""
    with recorded(ctx):
        return USELESS[which]


@job(retry=AT_ONCE, max_retries=3)
def pick(ctx: JobContext, parcel: int, colour: str) -> str:
    """Need a parcel with a number."""
    with recorded(ctx):
        return f"{parcel} {colour}"


@job(retry=AT_ONCE)
def late_verb(ctx: JobContext, verb: str, gate: str) -> str:
    """Wait at a gate, and come to the end that ``verb`` names."""
    note("start", ctx)
    wait_at(gate)
    note("verb", ctx, verb=verb)
    if verb == "fail":
        raise RuntimeError("late")
    if verb == "snooze":
        raise Snooze(0, "late")
    if verb == "progress":
        ctx.progress(77, who="late")
        time.sleep(0.3)  # reports are sent ten times a second
        note("reported", ctx)
        wait_at("never")
    return "late"


@job(atomic=True, retry=AT_ONCE, timeout=15)
def hold_atomic(ctx: JobContext, gate: str) -> str:
    """Write something, and wait before the transaction ends."""
    with recorded(ctx):
        Group.objects.create(name=f"written by {ctx.job_id} {ctx.fence}")
        if ctx.fence == 1:
            wait_at(gate)
        return f"fence {ctx.fence}"


@job(atomic=True, retry=AT_ONCE, timeout=15)
def die_once_stored(ctx: JobContext) -> str:
    """End the process as soon as the completion is committed, before anybody hears of it."""
    backends.current().on_commit(lambda: os.kill(os.getpid(), signal.SIGKILL))
    return "stored"


@job(atomic=True, retry=AT_ONCE, timeout=15)
def late_atomic(ctx: JobContext) -> str:
    """Write something in the transaction of the completion."""
    with recorded(ctx):
        Group.objects.create(name=f"written by {ctx.job_id} {ctx.fence}")
        return "late"


@job(atomic=True, retry=AT_ONCE, timeout=15)
def note_atomic(ctx: JobContext) -> None:
    """Begin and end in the transaction of the completion."""
    with recorded(ctx):
        return
