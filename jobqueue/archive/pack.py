"""The parts of an archive: how they are written, and packed into one file for each day and status."""

from __future__ import annotations

import contextlib
import fcntl
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from jobqueue.archive import files
from jobqueue.clock import SYSTEM
from jobqueue.ids import new_id

#: Seconds after which nobody writes a file any more that is not complete.
ABANDONED_AFTER = 3_600.0


def store(folder: Path, rows: Iterable[dict[str, Any]]) -> None:
    """Write jobs as new parts. When this returns, they are on the disk."""
    days: dict[str, list[bytes]] = {}
    for row in rows:
        ended_at = row["completed_at"] or row["updated_at"]
        days.setdefault(f"{row['status']}-{ended_at[:10]}", []).append(files.line_of(row))
    for name, lines in days.items():
        files.write(folder / f"{name}{files.PARTS_SUFFIX}" / f"{new_id()}{files.DAY_SUFFIX}", lines)


def pack(folder: Path, name: str) -> int:
    """Merge the parts of a day and status into its file, and return how many jobs it has.

    The parts are deleted after the file is on the disk. Those that are written meanwhile stay.
    """
    with _alone(folder):
        return _merge(folder, name, files.parts(folder, name))


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Keep other processes from packing. Two that merge at once would overwrite each other's file."""
    with (folder / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise OSError(f"another process packs {folder}") from error
        yield


def _merge(folder: Path, name: str, merged: Sequence[Path]) -> int:
    if not merged:
        return 0
    count = files.write(files.day_file(folder, name), files.lines(folder, name))
    for part in merged:
        part.unlink()
    _remove_rests(merged[0].parent)
    _remove_rests(folder)
    with contextlib.suppress(OSError):  # another part was written meanwhile
        merged[0].parent.rmdir()
    return count


def _remove_rests(folder: Path) -> None:
    """Delete what processes left that were killed while they wrote."""
    for path in folder.glob(".*.*"):
        if SYSTEM.now().timestamp() - path.stat().st_mtime > ABANDONED_AFTER:
            path.unlink(missing_ok=True)
