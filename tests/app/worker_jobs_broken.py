"""Handlers that break their executor: they send messages in its place, or leave copies of it behind."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from asgiref.sync import sync_to_async
from django.contrib.auth.models import Group
from pydantic import BaseModel

from jobqueue import Fixed, JobContext, job
from jobqueue.clock import SYSTEM
from jobqueue.worker.executor import forks
from jobqueue.worker.executor.executor import Executor
from tests.app.ledger import is_open, note, wait_at

ID, FENCE = b"00000000000000000000000000", b"7777"


def executor(ctx: JobContext) -> Executor:
    """Find the executor that runs an attempt."""
    claim = (ctx.job_id, ctx.fence)
    # Not gc.get_objects(): a tuple that another thread is making must not be seen before it is whole.
    told = [method.__self__ for one in forks._callbacks if (method := one())]
    return next(one for one in told if isinstance(one, Executor) and claim in one._running)


@job(retry=Fixed(0), max_retries=2)
def speak(ctx: JobContext, file: str) -> None:
    """Write a file's bytes to the channel of the executor; what stands for a claim in them is replaced by this one's.

    Both are as long as what they stand for.
    """
    note("start", ctx)
    said = Path(file).read_bytes().replace(ID, ctx.job_id.encode()).replace(FENCE, b"%4d" % ctx.fence)
    outgoing = executor(ctx)._outgoing
    with outgoing._sends:
        outgoing._channel.sendall(said)
    wait_at("never", 20)


@job(retry=Fixed(0), max_retries=2)
def begin_a_message(ctx: JobContext) -> None:
    """Announce a message and never end it."""
    note("start", ctx)
    executor(ctx)._channel.sendall(b"\0\0\xff\xff[")
    time.sleep(0.2)


class Anything(BaseModel):
    """A payload that may hold anything."""

    value: Any = None


@job
def take(payload: Anything) -> None:
    """Do nothing with it."""


def _deep() -> list[Any]:
    made: list[Any] = []
    for _ in range(100_000):
        made = [made]
    return made


UNSTORABLE: dict[str, Callable[[], Any]] = {
    "a long number": lambda: 10**5_000,
    "a long number in a list": lambda: [{"n": -(10**5_000)}],
    "no number": lambda: float("nan"),
    "an endless number": lambda: float("inf"),
    "deep": _deep,
    "half a character": lambda: "\ud800",
    "a NUL": lambda: "\0",
    "an object": lambda: object(),
    "too much": lambda: "x" * 300_000,
}


@job(retry=Fixed(0), max_retries=3)
def boast(ctx: JobContext, what: str, how: str) -> Any:
    """Lift the limits of the interpreter, and report, return or hand on what nobody can store."""
    note("start", ctx)
    sys.set_int_max_str_digits(0)
    sys.setrecursionlimit(1_000_000)
    value = UNSTORABLE[what]()
    if how == "result":
        return value
    try:
        if how == "progress":
            ctx.progress(1, n=value)
        elif how == "percent":
            ctx.progress(value)
        else:
            ctx.enqueue(take, value=value)
    except ValueError as error:
        note("refused", ctx, error=type(error).__name__)
    return "went on"


def _come_back(how: str) -> None:
    """Leave the handler as a child might that does not end by itself."""
    if how == "raises":
        raise RuntimeError("the child failed")
    if how == "exits":
        sys.exit(3)


def _fork(ctx: JobContext, how: str) -> str:
    """Fork a child that comes back from the handler; wait for its end, and say which of the two this is."""
    channel = executor(ctx)._channel.fileno()
    child = os.fork()
    if child == 0:
        note("child", ctx, is_open=_is_open(channel), how=how)
        _come_back(how)
        return "child"
    end = SYSTEM.monotonic() + 10
    while not (ended := os.waitpid(child, os.WNOHANG))[0] and SYSTEM.monotonic() < end:
        time.sleep(0.01)
    note("parent", ctx, status=os.waitstatus_to_exitcode(ended[1]) if ended[0] else None)
    return "parent"


def _is_open(descriptor: int) -> bool:
    try:
        return bool(os.fstat(descriptor))
    except OSError:
        return False


@job(retry=Fixed(0), max_retries=1)
def fork(ctx: JobContext, how: str) -> str:
    """Fork."""
    return _fork(ctx, how)


@job(retry=Fixed(0), max_retries=1, atomic=True)
def fork_atomic(ctx: JobContext, how: str) -> str:
    """Write something, and fork in the midst of the transaction."""
    Group.objects.create(name=f"written by {ctx.job_id} {ctx.fence}")
    return _fork(ctx, how)


@job(retry=Fixed(0), max_retries=1)
async def fork_async(ctx: JobContext, how: str) -> str:
    """Fork in a coroutine."""
    await asyncio.sleep(0)
    return _fork(ctx, how)


@job(retry=Fixed(0), max_retries=1)
async def fork_and_await(ctx: JobContext, how: str) -> str:
    """Fork in a coroutine, and have the child come back to the loop before it comes to the end of the handler."""
    waiting = asyncio.get_running_loop().create_future()
    who = _fork(ctx, "returns")
    if who == "child":
        await waiting
    return who


@job(retry=Fixed(0), max_retries=1)
async def fork_in_thread(ctx: JobContext, how: str) -> str:
    """Fork in the thread of a coroutine's synchronous code."""
    return await sync_to_async(_fork)(ctx, how)


@job(retry=Fixed(0), max_retries=1)
async def fork_in_pool(ctx: JobContext, how: str) -> str:
    """Fork in a thread of the loop's own."""
    return await asyncio.to_thread(_fork, ctx, how)


@job(retry=Fixed(0), max_retries=1)
async def tick_async(ctx: JobContext, gate: str) -> str:
    """Wait for a gate in a coroutine, and show signs of life."""
    while not is_open(gate):
        note("tick", ctx)
        await asyncio.sleep(0.01)
    return "done"


@job(retry=Fixed(0), max_retries=2)
def pour(ctx: JobContext, size: int, letter: str = "x") -> str:
    """Return a lot."""
    note("start", ctx)
    return letter * size


@job(retry=Fixed(0), max_retries=2)
def pour_out(ctx: JobContext, count: int, size: int) -> None:
    """Enqueue a lot."""
    for _ in range(count):
        ctx.enqueue(take, value="x" * size)


@job(max_retries=1)
def write(ctx: JobContext) -> None:
    """Write something, in no transaction of the completion."""
    note("start", ctx)
    Group.objects.create(name=f"written by {ctx.job_id} {ctx.fence}")
