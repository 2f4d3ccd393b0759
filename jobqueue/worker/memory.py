"""The memory of a process: its size, and the return of free memory to the system."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, cast


def resident(pid: int) -> int:
    """Return how much memory a process uses, in MB, or 0 if the system doesn't say."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    except (OSError, IndexError, ValueError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE") // 1_048_576


def give_back() -> None:
    """Return free memory to the system if the C library supports it, as glibc does."""
    if trim := _trimming():
        trim(0)


@cache
def _trimming() -> Callable[[int], Any] | None:
    try:
        return cast(Callable[[int], Any], ctypes.CDLL(None).malloc_trim)
    except (OSError, TypeError, AttributeError):  # nothing to load from, or not glibc
        return None
