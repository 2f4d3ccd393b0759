"""Handlers for tests of a worker's shutdown, options, databases, follow-up jobs, signals and verdicts."""

from __future__ import annotations

import asyncio
import os
import subprocess
import threading
import time
from datetime import timedelta
from typing import Any

from asgiref.sync import sync_to_async
from django.contrib.auth.models import Group
from django.db import connection, transaction

from jobqueue import Cancel, Discard, Fixed, JobContext, Receipt, Retry, Snooze, job, signals
from jobqueue.errors import Interrupted
from tests.app.ledger import is_open, note, recorded, wait_at

AT_ONCE = Fixed(0)
#: Names what the receivers of this module do: "note", "fail" or "dawdle". Unset, there are none.
RECEIVERS = "JOBQUEUE_TEST_RECEIVERS"


# The end of a worker


@job(retry=AT_ONCE)
def at_checkpoints(ctx: JobContext, gate: str) -> None:
    """Come to an end where nothing is lost, if asked to."""
    note("start", ctx)
    try:
        while not is_open(gate):
            ctx.checkpoint()
            time.sleep(0.005)
    except Interrupted as error:
        note("interrupted", ctx, reason=error.reason)
        raise


@job(retry=AT_ONCE)
def wind_up(ctx: JobContext, gate: str) -> str:
    """End early and in order, if asked to."""
    with recorded(ctx):
        while not is_open(gate):
            if ctx.should_stop():
                return "ended early"
            time.sleep(0.005)
        return "ended in full"


@job(retry=AT_ONCE)
async def at_checkpoints_async(ctx: JobContext, gate: str) -> None:
    """Do as ``at_checkpoints`` does, in a coroutine."""
    note("start", ctx)
    while not is_open(gate):
        ctx.checkpoint()
        await asyncio.sleep(0.005)


@job(retry=AT_ONCE)
def leave_orphans(ctx: JobContext, count: int) -> None:
    """Start processes whose parent ends before they do."""
    with recorded(ctx):
        for _ in range(count):
            subprocess.run(["/bin/sh", "-c", "sleep 0.05 &"], check=True)


@job(max_retries=1)
def run_program(ctx: JobContext) -> int:
    """Start a program, do something else, and then ask how it ended."""
    with recorded(ctx), subprocess.Popen(["/bin/sh", "-c", "exit 3"]) as program:
        time.sleep(2.5)
        return program.wait()


# Work


@job(retry=AT_ONCE)
def nap(ctx: JobContext, seconds: float = 0.0) -> int:
    """Take a while, and say in which process."""
    with recorded(ctx):
        time.sleep(seconds)
        return os.getpid()


def nap_many(count: int, **fields: Any) -> list[Receipt]:
    """Enqueue many naps."""
    return nap.enqueue_many([fields] * count)


@job(max_retries=3, retry=Fixed(0.2))
def third_time_lucky(ctx: JobContext, label: str = "") -> int:
    """Fail twice."""
    with recorded(ctx):
        if ctx.attempt < 3:
            raise ValueError(f"not yet: attempt {ctx.attempt}")
        return ctx.attempt


@job(max_retries=1)
def hopeless(ctx: JobContext, label: str = "") -> None:
    """Fail for good."""
    raise ValueError("no hope")


@job
def grow(ctx: JobContext, megabytes: int) -> int:
    """Keep memory, as a handler that leaks does."""
    _kept.append(bytearray(os.urandom(1024)) * (megabytes * 1024))
    return os.getpid()


_kept: list[bytearray] = []


# Connections


def _session() -> int:
    """Name the server's process behind this thread's connection; SQLite has none."""
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute("SELECT 1")
            return id(connection.connection)
        cursor.execute("SELECT pg_backend_pid()")
        return int(cursor.fetchone()[0])


@job(max_retries=1)
def look_around() -> dict[str, Any]:
    """Tell in which state this slot's connection is found."""
    state = {"in_atomic_block": connection.in_atomic_block, "names": list(Group.objects.values_list("name", flat=True))}
    return {**state, "session": _session(), "autocommit": connection.get_autocommit(), "thread": threading.get_ident()}


def _leave_atomic() -> None:
    transaction.atomic().__enter__()
    Group.objects.create(name="left in a block")


def _leave_autocommit() -> None:
    transaction.set_autocommit(False)
    Group.objects.create(name="left without autocommit")


def _leave_closed() -> None:
    Group.objects.count()
    connection.connection.close()


def _leave_failed() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT nothing FROM nowhere")


def _leave_marked() -> None:
    transaction.atomic().__enter__()
    transaction.set_rollback(True)


MESSES = {
    "a block": _leave_atomic,
    "no autocommit": _leave_autocommit,
    "a closed connection": _leave_closed,
    "a failed statement": _leave_failed,
    "a block to be rolled back": _leave_marked,
}


@job(max_retries=1)
def leave_mess(which: str) -> int:
    """Leave a connection as no handler should."""
    thread = threading.get_ident()
    MESSES[which]()
    return thread


@job(max_retries=1)
async def write_async(ctx: JobContext, name: str, gate: str) -> int:
    """Use the ORM from a coroutine, and keep the connection until all others have one too."""
    await Group.objects.acreate(name=name)
    found = await Group.objects.aget(name=name)
    session = await sync_to_async(_session)()
    note("session", ctx, session=session)
    while not is_open(gate):
        await asyncio.sleep(0.01)
    await found.adelete()
    return session


# One transaction


@job(atomic=True, max_retries=1, timeout=20)
def book(ctx: JobContext, name: str, gate: str = "", fail: bool = False) -> str:
    """Write something, and have a follow-up job, all in the transaction that completes this job."""
    note("start", ctx)
    Group.objects.create(name=name)
    ctx.enqueue(nap, seconds=0)
    if gate:
        wait_at(gate)
    if fail:
        raise ValueError("not booked")
    return name


@job(atomic=True, max_retries=1, timeout=20)
def spoil(ctx: JobContext, how: str) -> str:
    """Write something, and return as if all were well from a transaction that cannot commit."""
    Group.objects.create(name=how)
    ctx.enqueue(nap, seconds=0)
    if how == "left open":
        transaction.atomic().__enter__()
    else:
        transaction.set_rollback(True)
    return how


# Progress and follow-up jobs


@job(max_retries=1)
def report(ctx: JobContext, gate: str) -> None:
    """Say how far it is, often, and then for the last time."""
    note("start", ctx)
    for percent in range(41):
        ctx.progress(percent, step="reading")
    wait_at(gate)
    ctx.progress(90, step="writing")


@job(max_retries=1)
def bring_up(ctx: JobContext, gate: str = "", fail: bool = False, keys: dict[str, str] | None = None) -> list[str]:
    """Have children: two without a key, and one of each type and key that it is told."""
    note("start", ctx)
    ids = [ctx.enqueue(nap, seconds=0), ctx.enqueue("note_run", number=7)]
    for key, kind in (keys or {}).items():
        ids.append(ctx.enqueue((nap if kind == "nap" else wind_up_later).using(idempotency_key=key)))
    if gate:
        wait_at(gate)
    if fail:
        raise ValueError("no children after all")
    return ids


@job(atomic=True, max_retries=1, timeout=20)
def bring_up_atomic(ctx: JobContext, keys: dict[str, str]) -> list[str]:
    """Have children in one transaction with their parent's completion."""
    return [ctx.enqueue(nap.using(idempotency_key=key)) for key in keys]


@job
def wind_up_later() -> None:
    """Be another type."""


# What an attempt comes to


def _no_delay(attempt: int, rng: object) -> timedelta:
    raise ZeroDivisionError("the policy is broken")


VERDICTS = {
    "retry": lambda: Retry(3600, "the other side is closed"),
    "snooze": lambda: Snooze(3600, "not before noon"),
    "discard": lambda: Discard("there is no such thing"),
    "cancel": lambda: Cancel("withdrawn"),
    "not worth it": lambda: KeyError("x"),
    "worth it": lambda: OSError("the disk is busy"),
}


@job(retry=Fixed(600), retry_on=(OSError,))
def judge(which: str) -> None:
    """Say what the attempt comes to."""
    raise VERDICTS[which]()


@job(retry=_no_delay)
def ill_advised() -> None:
    """Fail, under a policy that fails."""
    raise ValueError("the error of the handler")


@job(retry=lambda attempt, rng: timedelta.max)
def out_of_sight() -> None:
    """Fail, under a policy that waits longer than there are dates."""
    raise ValueError("the error of the handler")


@job(retry=lambda attempt, rng: "soon")
def out_of_mind() -> None:
    """Fail, under a policy that says no time at all."""
    raise ValueError("the error of the handler")


# Signals

SIGNALS = {
    name: getattr(signals, name)
    for name in (
        "enqueued",
        "started",
        "progressed",
        "completed",
        "retried",
        "dead_lettered",
        "cancelled",
        "lease_lost",
        "worker_started",
        "worker_stopped",
        "executor_started",
    )
}


def _receiver(name: str, manner: str) -> Any:
    def receive(sender: object, **facts: Any) -> None:
        facts.pop("signal")
        note("signal", signal=name, **{("announced" if key == "pid" else key): value for key, value in facts.items()})
        if manner == "dawdle":
            time.sleep(0.05)
        if manner == "fail":
            raise RuntimeError(f"the receiver of {name} fails")

    return receive


if os.environ.get(RECEIVERS):
    for _name, _signal in SIGNALS.items():
        _signal.connect(_receiver(_name, os.environ[RECEIVERS]), weak=False)
