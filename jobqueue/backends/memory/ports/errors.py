"""Groups of dead letters by error, in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from jobqueue.backends.memory.tables import MemoryTables
from jobqueue.backends.ports import ErrorReader
from jobqueue.policy.fingerprint import Grouping, grouping
from jobqueue.policy.redaction import redact_text
from jobqueue.records import (
    HOUR,
    HOURS,
    Caps,
    Ending,
    ErrorGroup,
    ErrorGroups,
    ErrorShare,
    ErrorShares,
    Failure,
    GroupFilter,
    GroupOrder,
    JobRecord,
    PastAttempt,
    SeenIn,
)
from jobqueue.records.error_group import host_of
from jobqueue.states import JobStatus

ERROR_SHOWN = 300
_NEVER = datetime.min.replace(tzinfo=UTC)
_ALL = GroupFilter()


class MemoryErrorReader(ErrorReader):
    """Sums up the dead letters, under the lock of the tables."""

    def __init__(self, tables: MemoryTables) -> None:
        self._tables = tables

    def groups(self, limit: int, caps: Caps, wanted: GroupFilter = _ALL) -> ErrorGroups:
        kinds = self._kinds()
        is_exact = sum(map(len, kinds.values())) <= caps.groups
        most = caps.group if is_exact else caps.shared(min(len(kinds), limit))[0]
        found = [self._group(name, rows, most) for name, rows in sorted(kinds.items())]
        found = [one for one in found if wanted.matches(one.type, one.error_class, redact_text(one.error))]
        if wanted.order is GroupOrder.LARGEST:
            found.sort(key=lambda one: (one.count, one.last_at or _NEVER), reverse=True)
        else:
            found.sort(key=_newest_first if wanted.order is GroupOrder.NEWEST else _latest_first, reverse=True)
        most_an_hour = caps.shared(len(found[:limit]))[1]
        return ErrorGroups(tuple(_by_hour(one, most_an_hour) for one in found[:limit]), more=len(found) > limit)

    def group(self, fingerprint: str, caps: Caps) -> ErrorGroup | None:
        rows = self._kinds().get(fingerprint)
        most, most_an_hour = caps.shared(1)
        return _by_hour(self._group(fingerprint, rows, most), most_an_hour) if rows else None

    def shares(self, fingerprint: str, most: int) -> ErrorShares:
        rows = self._kinds().get(fingerprint, [])
        newest = rows[-most:]
        last = [_last(row) for row in newest]
        return ErrorShares(
            of=len(newest),
            is_all=len(rows) <= most,
            tenants=_shares(row.tenant for row in newest),
            queues=_shares(row.queue for row in newest),
            hosts=_shares(host_of(past.owner if past else "") for past in last),
            releases=_shares(past.release if past else "" for past in last),
        )

    def groupings(self, ids: Sequence[str]) -> dict[str, Grouping]:
        with self._tables.lock:
            rows = [self._tables.jobs[one] for one in ids if one in self._tables.jobs]
        return {row.id: grouping(row.type, _failure(row)) for row in rows if row.status is JobStatus.DEAD_LETTER}

    def outdated(self, ids: Sequence[str]) -> dict[str, str]:
        with self._tables.lock:
            by_now = {job_id: one.fingerprint for job_id, one in self.groupings(ids).items()}
            return {one: name for one, name in by_now.items() if self._tables.jobs[one].error_fingerprint != name}

    def _kinds(self) -> dict[str, list[JobRecord]]:
        """Return the dead letters of each fingerprint, the oldest first."""
        kinds: dict[str, list[JobRecord]] = {}
        with self._tables.lock:
            dead = [row for row in self._tables.jobs.values() if row.status is JobStatus.DEAD_LETTER]
        for row in sorted(dead, key=lambda row: (_seen(row), row.id)):
            kinds.setdefault(row.error_fingerprint or "", []).append(row)
        return kinds

    def _group(self, name: str, rows: Sequence[JobRecord], most: int) -> ErrorGroup:
        newest, last = rows[-1], _last(rows[-1])
        moments = [row.completed_at for row in rows if row.completed_at]
        known = sorted((at, release) for (one, release), at in self._tables.errors.items() if one == name)
        since = self._tables.now() - HOURS * HOUR
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
            first_at=min([*moments, *(at for at, _release in known)], default=None),
            last_at=max(moments, default=None),
            hourly=tuple(places.count(hour) for hour in range(HOURS)),
            hourly_cap=len(rows),
            retried_at=self._tables.retries.get(name),
            releases=tuple(SeenIn(release, at) for at, release in known if release),
        )


def _by_hour(group: ErrorGroup, most: int) -> ErrorGroup:
    """Cap the counts of a group's hours."""
    return replace(group, hourly=tuple(min(most, count) for count in group.hourly), hourly_cap=most)


def _last(row: JobRecord) -> PastAttempt | None:
    return max(row.history, key=lambda past: past.fence, default=None)


def _failure(row: JobRecord) -> Failure:
    past = _last(row)
    if past is None:
        return Failure.of(Ending.FAILED, message=row.error or "")
    words = past.message or row.error or ""
    return Failure.of(past.ending, error_class=past.error_class, message=words, traceback=past.traceback)


def _shares(names: Iterable[str | None]) -> tuple[ErrorShare, ...]:
    counts = Counter(name or "" for name in names)
    return tuple(ErrorShare(name, counts[name]) for name in sorted(counts, key=lambda one: (-counts[one], one)))


def _seen(row: JobRecord) -> datetime:
    return row.completed_at or _NEVER


def _latest_first(group: ErrorGroup) -> datetime:
    return group.last_at or _NEVER


def _newest_first(group: ErrorGroup) -> datetime:
    return group.first_at or _NEVER
