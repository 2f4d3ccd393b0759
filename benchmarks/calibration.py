"""The current speed of this machine, without which figures of different days can't be compared."""

from __future__ import annotations

import os
import tempfile
from statistics import median

from ulid import ULID

from benchmarks.timing import seconds

_IDS = 20_000
_SYNCS = 200
_PAGE = b"\0" * 4096


def calibrate() -> dict[str, float]:
    """Measure, in microseconds, the making of a ULID and the syncing of a page in the temporary folder."""
    return {"ulid_us": _ulid(), "fdatasync_p50_us": _fdatasync()}


def _ulid() -> float:
    def make() -> None:
        for _ in range(_IDS):
            str(ULID())

    return min(seconds(make) for _ in range(3)) / _IDS * 1e6


def _fdatasync() -> float:
    sync = getattr(os, "fdatasync", os.fsync)
    with tempfile.TemporaryFile() as file:

        def write() -> None:
            os.pwrite(file.fileno(), _PAGE, 0)
            sync(file.fileno())

        return median(seconds(write) for _ in range(_SYNCS)) * 1e6
