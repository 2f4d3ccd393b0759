"""The handlers of a new release: one that the previous release lacks, and one with a changed payload."""

from __future__ import annotations

from typing import Any

from benchmarks.faults.jobs import KINDS, Kind, Told
from benchmarks.faults.ledger import recorded
from jobqueue import Fixed, JobContext, job


def _from_1(payload: dict[str, Any]) -> dict[str, Any]:
    return {"address": payload["email"], "language": "en"}


# A release that cannot run such a job must not use up its only attempt.


@job(version=2, upgraders={1: _from_1}, retry=Fixed(0), max_retries=1)
def letter(ctx: JobContext, address: str, language: str) -> Told:
    """Do what both releases do, with a payload that only this one reads."""
    with recorded(ctx):
        if not (address and language):
            raise ValueError("a letter needs both")
        return {"fence": ctx.fence}


@job(retry=Fixed(0), max_retries=1)
def parcel(ctx: JobContext) -> Told:
    """Do what only this release does."""
    with recorded(ctx):
        return {"fence": ctx.fence}


KINDS["letter"] = Kind(letter, lambda _: {"address": "a@example.com", "language": "de"})
KINDS["parcel"] = Kind(parcel, lambda _: {})
