"""Durations: conversion from callers' values, and to and from stored seconds."""

from __future__ import annotations

from datetime import timedelta
from math import isfinite, isnan

#: Longer than any useful duration, and short enough that dates don't overflow.
LONGEST_DURATION = timedelta(days=3650)


def read(value: object) -> timedelta:
    """Return seconds or a timedelta as a timedelta. Raise ValueError if it is negative or above LONGEST_DURATION."""
    if isinstance(value, bool) or not isinstance(value, (int, float, timedelta)):
        raise ValueError(f"must be seconds or a timedelta, got {type(value).__name__}")
    seconds = value.total_seconds() if isinstance(value, timedelta) else value
    if isinstance(seconds, float) and not isfinite(seconds):
        raise ValueError(f"must be a length of time, got {value!r}")
    if seconds < 0:
        raise ValueError(f"must not be negative, got {value!r}")
    if seconds > LONGEST_DURATION.total_seconds():
        raise ValueError(f"must be at most {LONGEST_DURATION.days} days, got {value!r}")
    return value if isinstance(value, timedelta) else timedelta(seconds=value)


def in_seconds(length: timedelta | None) -> float | None:
    """Return a duration as seconds."""
    return None if length is None else length.total_seconds()


def from_seconds(seconds: float | None) -> timedelta | None:
    """Return seconds as a duration, which is never longer than LONGEST_DURATION: other programs write any number."""
    if seconds is None or isnan(seconds):
        return None
    longest = LONGEST_DURATION.total_seconds()
    return timedelta(seconds=max(-longest, min(seconds, longest)))
