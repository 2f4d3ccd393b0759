"""The handlers of a run: most do nothing, for what is measured is the queue."""

from __future__ import annotations

import ctypes
import os
import time
from pathlib import Path

from pydantic import BaseModel

from jobqueue import JobContext, job
from jobqueue.clock import SYSTEM


class Resize(BaseModel):
    """Which image, and how wide."""

    image_id: int
    width: int = 800


@job
def resize_image(payload: Resize) -> None:
    """Do nothing."""


@job
async def resize_soon(payload: Resize) -> None:
    """Do nothing, as a coroutine."""


@job
def stamp(path: str) -> None:
    """Say when it began, to whoever reads the pipe."""
    began = SYSTEM.monotonic()
    with Path(path).open("w", encoding="ascii") as pipe:
        pipe.write(f"{began!r}\n")


@job
def wait(path: str, ctx: JobContext) -> None:
    """Say which process runs it, and stay until that is ended."""
    with Path(path).open("a", encoding="ascii") as ledger:
        ledger.write(f"{os.getpid()}\n")
    while not ctx.should_stop():
        time.sleep(0.05)


@job
def hog(seconds: float) -> None:
    """Hold the interpreter's lock in one C call."""
    ctypes.PyDLL(None).usleep(int(seconds * 1_000_000))
