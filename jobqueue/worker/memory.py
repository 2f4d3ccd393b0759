"""Memory: how much a process takes, and what it has free and may give back to the system."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, cast


def resident(pid: int) -> int:
    """Read how much memory a process takes, in MB; 0 where the system does not tell."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    except (OSError, IndexError, ValueError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE") // 1_048_576


def give_back() -> None:
    """Give back what is free, where the C library can: glibc's does."""
    if trim := _trimming():
        trim(0)


@cache
def _trimming() -> Callable[[int], Any] | None:
    try:
        return cast(Callable[[int], Any], ctypes.CDLL(None).malloc_trim)
    except (OSError, TypeError, AttributeError):  # nothing to load from, or not glibc
        return None
