"""The options that a worker would read from the environment of this process."""

from __future__ import annotations

import os

_MOST = 1_000_000


def told(option: str, default: float) -> float:
    """Return an option of the worker as set in the environment. The worker reports invalid values."""
    try:
        told = float(os.environ.get(f"JOBQUEUE_WORKER_{option}") or default)
    except ValueError:
        return default
    return told if 0 < told < _MOST else default
