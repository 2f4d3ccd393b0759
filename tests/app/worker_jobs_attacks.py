"""Handlers for the attacks, which report their input."""

from __future__ import annotations

import sys
import time
from typing import Any, NoReturn

from jobqueue import Fixed, JobContext, job


class Loud(Exception):
    """What a handler says when it fails."""


@job(retry=Fixed(0))
def shout(text: str) -> NoReturn:
    """Fail with the words given."""
    raise Loud(text)


@job(retry=Fixed(0))
def swallow(payload: dict[str, Any]) -> None:
    """Take anything, and do nothing with it."""


@job(retry=Fixed(0), max_retries=2)
def log_in(payload: dict[str, Any], ctx: JobContext) -> str:
    """Handle secrets as handlers do, and end as asked."""
    password, url = payload["account"]["password"], payload["url"]
    ctx.progress(50, token=password)
    if payload["how"] == "fails":
        raise Loud(f"{password} was refused at {url}, password={password!r}") from ConnectionError(url)
    return "done"


@job(retry=Fixed(0))
def linger(seconds: float) -> None:
    """Keep a worker up for a while."""
    time.sleep(seconds)


@job(retry=Fixed(0), max_retries=2)
def lead_on(ctx: JobContext, key: str, once: bool = False) -> str:
    """Have a follow-up with a key."""
    return ctx.enqueue(swallow.using(**{"idempotency_key" if once else "unique_key": key}), number=1)


@job(retry=Fixed(0), max_retries=2, atomic=True, timeout=15)
def lead_on_atomic(ctx: JobContext, key: str, once: bool = False) -> str:
    """Have it in one transaction with the completion."""
    return ctx.enqueue(swallow.using(**{"idempotency_key" if once else "unique_key": key}), number=1)


@job(retry=Fixed(0.5))
def falter(text: str) -> NoReturn:
    """Fail, so that a worker that drains waits for the next attempt."""
    raise Loud(text)


@job(retry=Fixed(0.5), max_retries=2)
def report_digits(ctx: JobContext, digits: int) -> None:
    """Tell of a number that Python would not read again, and fail the first time."""
    sys.set_int_max_str_digits(0)
    ctx.progress(1, n=10**digits)
    if ctx.attempt == 1:
        time.sleep(0.3)
        raise Loud("again")
