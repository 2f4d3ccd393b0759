"""Diagnoses: each has a level, a stable code, what is wrong, a remedy, and the page that says more."""

from __future__ import annotations

from dataclasses import dataclass

from jobqueue.observe.health import Level


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """One thing that is set up wrong, or will cause trouble. ``page`` is a path in the documentation's folder."""

    level: Level
    code: str
    text: str
    remedy: str
    page: str


def megabytes(size: int) -> str:
    """Write a size in bytes."""
    return f"{size / 2**20:,.0f} MB"
