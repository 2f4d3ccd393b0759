"""The handlers as jobs of this queue. Import it after the apps are ready."""

from __future__ import annotations

from pydantic import BaseModel

from benchmarks.peers.adapters import handlers
from jobqueue import job


class Resize(BaseModel):
    """Which image, and how wide."""

    image_id: int
    width: int = 800


class Stamp(BaseModel):
    """Which pipe to write to."""

    path: str


@job
def resize_image(payload: Resize) -> None:
    """Do nothing."""
    handlers.resize_image(payload.image_id, payload.width)


@job
async def resize_image_soon(payload: Resize) -> None:
    """Do nothing, as a coroutine."""
    await handlers.resize_image_soon(payload.image_id, payload.width)


@job
def nap(payload: Resize) -> None:
    """Sleep for a while."""
    handlers.nap(payload.image_id, payload.width)


@job
async def nap_soon(payload: Resize) -> None:
    """Sleep for a while, as a coroutine."""
    await handlers.nap_soon(payload.image_id, payload.width)


@job
def stamp(payload: Stamp) -> None:
    """Say when it began."""
    handlers.stamp(payload.path)


@job
async def stamp_soon(payload: Stamp) -> None:
    """Say when it began, as a coroutine."""
    handlers.stamp(payload.path)
