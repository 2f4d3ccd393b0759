"""The handler that is enqueued: a payload of two fields, as most have."""

from __future__ import annotations

from pydantic import BaseModel

from jobqueue import job


class Resize(BaseModel):
    """Which image, and how wide."""

    image_id: int
    width: int = 800


@job
def resize_image(payload: Resize) -> None:
    """Do nothing: what is measured is the queue."""
