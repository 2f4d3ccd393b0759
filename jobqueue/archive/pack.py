"""The parts of an archive: how they are written, packed into one file for each day and status, and read."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from jobqueue.archive import files
from jobqueue.archive.place import Place


def store(place: Place, rows: Iterable[dict[str, Any]]) -> None:
    """Write jobs as new parts. When this returns, they are stored."""
    days: dict[str, list[bytes]] = {}
    for row in rows:
        ended_at = row["completed_at"] or row["updated_at"]
        days.setdefault(f"{row['status']}-{ended_at[:10]}", []).append(files.line_of(row))
    for day, lines in days.items():
        place.write_part(day, lines)


def pack(place: Place, day: str) -> int:
    """Merge the parts of a day and status into its file, and return how many jobs it has.

    The parts are deleted after the file is stored. Those that are written meanwhile stay.
    """
    with place.alone():
        packed, parts = place.packed(day), place.parts(day)
        if not parts and len(packed) < 2:
            return 0
        merged = [*packed, *parts]
        return place.pack(day, _lines(place, merged), merged)


def lines(place: Place, day: str) -> Iterator[bytes]:
    """Read the jobs of a day and status, the last archived first, each once.

    A job is in two files if the process that archived it died before the job was deleted.
    """
    return _lines(place, [*place.packed(day), *place.parts(day)])


def _lines(place: Place, names: list[str]) -> Iterator[bytes]:
    seen = set[str]()
    for name in reversed(names):
        for line in place.read(name):
            job_id = json.loads(line)["id"]
            if job_id not in seen:
                seen.add(job_id)
                yield line
