"""Handlers that say what they are given, for the tests that attack."""

from __future__ import annotations

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
