"""Groups of dead letters by error, in memory."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from jobqueue.backends.memory.tables import MemoryTables
from jobqueue.backends.ports import ErrorReader
from jobqueue.records import HOUR, HOURS, Caps, ErrorGroup, ErrorGroups, JobRecord
from jobqueue.states import JobStatus

ERROR_SHOWN = 300
_NEVER = datetime.min.replace(tzinfo=UTC)


class MemoryErrorReader(ErrorReader):
    """Sums up the rows that the lock keeps still."""

    def __init__(self, tables: MemoryTables) -> None:
        self._tables = tables

    def groups(self, limit: int, caps: Caps) -> ErrorGroups:
        kinds = sorted(self._kinds().items())
        kinds.sort(key=lambda kind: _seen(kind[1][-1]), reverse=True)
        shared, shown = caps.shared(len(kinds[:limit])), kinds[:limit]
        groups = tuple(_group(name, rows, shared, self._tables.now()) for name, rows in shown)
        return ErrorGroups(groups, more=len(kinds) > limit)

    def group(self, fingerprint: str, caps: Caps) -> ErrorGroup | None:
        rows = self._kinds().get(fingerprint)
        return _group(fingerprint, rows, caps.shared(1), self._tables.now()) if rows else None

    def _kinds(self) -> dict[str, list[JobRecord]]:
        """The dead letters of each fingerprint, the oldest first."""
        kinds: dict[str, list[JobRecord]] = {}
        with self._tables.lock:
            dead = [row for row in self._tables.jobs.values() if row.status is JobStatus.DEAD_LETTER]
        for row in sorted(dead, key=lambda row: (_seen(row), row.id)):
            kinds.setdefault(row.error_fingerprint or "", []).append(row)
        return kinds


def _seen(row: JobRecord) -> datetime:
    return row.completed_at or _NEVER


def _group(name: str, rows: Sequence[JobRecord], shared: tuple[int, int], now: datetime) -> ErrorGroup:
    newest, (most, most_an_hour) = rows[-1], shared
    last = max(newest.history, key=lambda past: past.fence, default=None)
    moments = [row.completed_at for row in rows if row.completed_at]
    since = now - HOURS * HOUR
    places = [min(HOURS - 1, (moment - since) // HOUR) for moment in moments if moment >= since]
    return ErrorGroup(
        fingerprint=name,
        newest_id=newest.id,
        type=newest.type,
        error=(newest.error or "")[:ERROR_SHOWN],
        error_class=last.error_class if last else "",
        ending=last.ending if last else None,
        count=min(len(rows), most),
        capped=len(rows) > most,
        first_at=min(moments, default=None),
        last_at=max(moments, default=None),
        hourly=tuple(min(most_an_hour, places.count(hour)) for hour in range(HOURS)),
        hourly_cap=most_an_hour,
    )
