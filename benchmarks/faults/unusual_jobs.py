"""Handlers that start processes, for workers started by ``with_jobs``."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
from collections.abc import Callable

from django.apps import apps
from django.db import connection, connections

from benchmarks.faults.jobs import KINDS, MANY, Kind, Told
from benchmarks.faults.ledger import recorded
from jobqueue import Fixed, JobContext, job

#: The parent's connections, kept from collection in the child, which must not close them.
_left_alone: list[object] = []


def _succeeded(pid: int) -> None:
    if os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]):
        raise RuntimeError("a child has failed")


def _fork() -> None:
    if (pid := os.fork()) == 0:
        os._exit(0 if sum(range(1000)) else 1)
    _succeeded(pid)


def _fork_and_ask() -> None:
    """Let a child use the database with a connection of its own."""
    if (pid := os.fork()) == 0:
        status = 1
        try:
            for one in connections.all(initialized_only=True):
                _left_alone.append(one.connection)
                one.connection = None
            apps.get_model("jobqueue", "Job")._default_manager.count()
            status = 0
        finally:
            os._exit(status)
    _succeeded(pid)


def _multiprocessing() -> None:
    process = multiprocessing.get_context("fork").Process(target=sum, args=(range(1000),))
    process.start()
    process.join()
    if process.exitcode:
        raise RuntimeError(f"a child has ended with {process.exitcode}")


def _program() -> None:
    subprocess.run(["true"], check=True)  # noqa: S607 - whichever it is


WAYS: dict[str, Callable[[], None]] = {
    "fork": _fork,
    "fork and ask": _fork_and_ask,
    "multiprocessing": _multiprocessing,
    "program": _program,
}


def _session() -> object:
    """Return the session of this thread's connection, as the database names it."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1" if connection.vendor == "sqlite" else "SELECT pg_backend_pid()")
        return cursor.fetchone()[0], id(connection.connection)


# A forked child of a process with threads may inherit a lock that is never released. Its job then hangs until its
# limit.
@job(retry=Fixed(0), max_retries=MANY, timeout=20)
def forks(ctx: JobContext, how: str) -> Told:
    """Fork a child, wait for it, and write with the earlier connection."""
    with recorded(ctx):
        before = _session()
        WAYS[how]()
        if _session() != before:
            raise RuntimeError("this session is another")
        with connection.cursor() as cursor:
            cursor.execute("INSERT INTO laboratory_effect (job_id) VALUES (%s)", [ctx.job_id])
        return {"fence": ctx.fence}


@job(retry=Fixed(0), max_retries=MANY)
def leaves_orphans(ctx: JobContext) -> Told:
    """Start a program whose parent ends at once, so that it becomes an orphan."""
    with recorded(ctx):
        subprocess.run(["sh", "-c", "sleep 0.1 & exit 0"], check=True)  # noqa: S607 - whichever it is
        return {"fence": ctx.fence}


KINDS["forks"] = Kind(forks, lambda rng: {"how": rng.choice(sorted(WAYS))})
KINDS["leaves_orphans"] = Kind(leaves_orphans, lambda _: {})
