"""What the shop does in the background; found by autodiscovery."""

from __future__ import annotations

from pydantic import BaseModel

from jobqueue import Exponential, JobContext, job


class Resize(BaseModel):
    """Which image, and how wide it shall be."""

    image_id: int
    width: int = 800


@job(queue="images", priority=3, max_retries=5, timeout=30, retry=Exponential(base=2, cap=600), retry_on=(OSError,))
def resize_image(payload: Resize, ctx: JobContext) -> dict[str, int]:
    """Make a smaller copy of an image."""
    return {"image_id": payload.image_id, "width": payload.width, "attempt": ctx.attempt}


@job
def send_welcome(user_id: int, language: str = "en") -> str:
    """Greet a new customer."""
    return f"welcome {user_id} ({language})"
