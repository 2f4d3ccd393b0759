"""The work of all contestants' handlers: count, and then do nothing, sleep, or record the start."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

from benchmarks.peers.adapters.tally import begin, now

#: How long a handler that sleeps does so, in seconds.
NAP = 0.005
PAYLOAD: dict[str, Any] = {"image_id": 7, "width": 800}


def resize_image(image_id: int, width: int) -> None:
    """Do nothing."""
    begin()


async def resize_image_soon(image_id: int, width: int) -> None:
    """Do nothing, as a coroutine."""
    begin()


def nap(image_id: int, width: int) -> None:
    """Sleep for a while."""
    begin()
    time.sleep(NAP)


async def nap_soon(image_id: int, width: int) -> None:
    """Sleep for a while, as a coroutine."""
    begin()
    await asyncio.sleep(NAP)


def stamp(path: str) -> None:
    """Say when it began, to whoever reads the pipe."""
    began = now()
    with Path(path).open("w", encoding="ascii") as pipe:
        pipe.write(f"{began!r}\n")


async def stamp_soon(path: str) -> None:
    """Say when it began, as a coroutine."""
    stamp(path)
