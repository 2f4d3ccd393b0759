"""The handlers of a run. Most do nothing, because the queue is measured."""

from __future__ import annotations

import asyncio
import ctypes
import gc
import os
import time
from functools import cache
from pathlib import Path

from django.db import connection
from pydantic import BaseModel

from jobqueue import JobContext, job
from jobqueue.clock import SYSTEM


class Resize(BaseModel):
    """An image, and its new width."""

    image_id: int
    width: int = 800


@job
def resize_image(payload: Resize) -> None:
    """Do nothing."""


@job
async def resize_soon(payload: Resize) -> None:
    """Do nothing, as a coroutine."""


@job
def nap(seconds: float) -> None:
    """Wait, like most handlers do most of the time."""
    time.sleep(seconds)


@job
async def nap_soon(seconds: float) -> None:
    """Wait, as a coroutine."""
    await asyncio.sleep(seconds)


@job(atomic=True)
def book(payload: Resize, ctx: JobContext) -> None:
    """Write one row, which commits with the job's completion."""
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO booking (job_id, image_id) VALUES (%s, %s)", [ctx.job_id, payload.image_id])


@job
def stamp(path: str) -> None:
    """Write the start time to a pipe."""
    began = SYSTEM.monotonic()
    with Path(path).open("w", encoding="ascii") as pipe:
        pipe.write(f"{began!r}\n")


@job
def sign(path: str, ctx: JobContext) -> None:
    """Append the start time to a ledger, with one system call."""
    began = SYSTEM.monotonic()
    os.write(_ledger(path), f"{ctx.job_id} {began!r}\n".encode())


@cache
def _ledger(path: str) -> int:
    return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)


@job
def wait(path: str, ctx: JobContext) -> None:
    """Report the process, and wait until it is killed."""
    with Path(path).open("a", encoding="ascii") as ledger:
        ledger.write(f"{os.getpid()}\n")
    while not ctx.should_stop():
        time.sleep(0.05)


@job
def last(path: str, ctx: JobContext) -> int:
    """Show signs of life until the process is killed. A later run shows one, and returns its fence."""
    while True:
        os.write(_ledger(path), f"{ctx.job_id} {ctx.fence} {SYSTEM.monotonic()!r}\n".encode())
        if ctx.fence > 1:
            return ctx.fence
        time.sleep(0.005)


@job
def compute(ctx: JobContext) -> None:
    """Compute in Python until told to stop, without ever releasing the interpreter's lock voluntarily."""
    while not ctx.should_stop():
        pass


@job
def hog(seconds: float) -> None:
    """Hold the interpreter's lock in one C call."""
    ctypes.PyDLL(None).usleep(int(seconds * 1_000_000))


@job
def collect(path: str) -> None:
    """Run a full garbage collection in this process, and report which one it was."""
    gc.collect()
    with Path(path).open("a", encoding="ascii") as ledger:
        ledger.write(f"{os.getpid()}\n")


@job(max_retries=1_000)
def occupy(path: str, seconds: float, key: str, ctx: JobContext) -> None:
    """Wait, and note the beginning and the end in a ledger, with one system call each."""
    about = f"{ctx.job_id} {ctx.fence} {os.getpid()}"
    os.write(_ledger(path), f"+ {about} {SYSTEM.monotonic()!r} {ctx.queue} {key}\n".encode())
    time.sleep(seconds)
    os.write(_ledger(path), f"- {about} {SYSTEM.monotonic()!r} {ctx.queue} {key}\n".encode())
