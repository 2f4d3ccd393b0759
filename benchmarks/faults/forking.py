"""Functions that run in forked processes, beside a fault or in step with it."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.context import ForkProcess
from multiprocessing.synchronize import Barrier, Event

from django.db import connections

#: How long a process waits for the others.
PATIENCE = 60.0

Step = Callable[[], object]


@contextmanager
def beside(*works: Callable[[], object]) -> Iterator[None]:
    """Call functions again and again in child processes until the block ends. Raise if one of them failed."""
    forking = multiprocessing.get_context("fork")
    over = forking.Event()
    with _forked([forking.Process(target=_repeat, args=(work, over), daemon=True) for work in works]) as helpers:
        try:
            yield
        finally:
            over.set()
        for helper in helpers:
            helper.join(PATIENCE)
            if helper.exitcode != 0:
                raise RuntimeError(f"What ran beside the fault ended with {helper.exitcode}.")


@contextmanager
def in_step(*works: Callable[[Step], object]) -> Iterator[Step]:
    """Run functions in step with the block: each step begins when all have reached it."""
    forking = multiprocessing.get_context("fork")
    barrier = forking.Barrier(len(works) + 1, timeout=PATIENCE)
    with _forked([forking.Process(target=_walk, args=(work, barrier), daemon=True) for work in works]):
        yield barrier.wait


@contextmanager
def _forked(processes: list[ForkProcess]) -> Iterator[list[ForkProcess]]:
    connections.close_all()  # a connection shared by a fork corrupts its session
    for process in processes:
        process.start()
    try:
        yield processes
    finally:
        for process in processes:
            process.terminate()
            process.join()


def _repeat(work: Callable[[], object], over: Event) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    while not over.is_set():
        work()


def _walk(work: Callable[[Step], object], barrier: Barrier) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        work(barrier.wait)
    finally:
        barrier.abort()
