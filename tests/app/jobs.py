"""Handlers of every form."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from pydantic import BaseModel

from jobqueue import Exponential, JobContext, job


class Resize(BaseModel):
    image_id: int
    width: int = 800


@job(queue="images", priority=3, max_retries=5, timeout=30, retry=Exponential(base=2, cap=600), retry_on=(OSError,))
def resize_image(payload: Resize, ctx: JobContext) -> dict[str, int]:
    return {"image_id": payload.image_id, "width": payload.width, "attempt": ctx.attempt}


@job
def send_welcome(user_id: int, language: str = "en") -> str:
    return f"{user_id} {language}"


@job("greet.v2", aliases=["greet"], delay=timedelta(seconds=5))
async def greet(ctx: JobContext, name: str) -> str:
    return f"hello {name} from {ctx.job_id}"


@job
def anything(payload: dict[str, Any]) -> None:
    return None


@job
def keep(value: Any) -> Any:
    return value


@job
def weigh(parcel_id: int, kilos: float) -> float:
    return kilos
