"""The counters: sums that never fall, for monitors that compare them with what they read before."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from datetime import datetime
from functools import reduce
from operator import or_
from typing import Any

from django.db.models import Q, QuerySet

from jobqueue.backends.sql.session import Session
from jobqueue.models import Counter
from jobqueue.policy.counters import FORGOTTEN_AFTER, placed
from jobqueue.policy.histogram import merged, read, written
from jobqueue.policy.stretches import Name
from jobqueue.records import Lengths, Tally
from jobqueue.records.metric import ENDS

_LENGTHS = ("waited", "ran", "attempts")
_SUMS = tuple(f"{name}_sum" for name in _LENGTHS)
_COUNTED = (*ENDS, *_LENGTHS, *_SUMS, "updated_at")
_UNIQUE = ("queue", "type")
#: The largest number that a column holds with room for the next addition, and a sum of seconds that no jobs reach.
_MOST = 2**62
_BEYOND_ALL = 1e15
#: More counters than there can be, unless another program wrote them.
_READ_AT_MOST = 1_000


class SqlCounters:
    """Keeps a row for each queue and type. As with metrics, rows that another session has locked are skipped."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def read(self) -> list[Tally]:
        """Read all counters, by queue and type."""
        rows = self._session.rows(Counter).order_by(*_UNIQUE).values(*_UNIQUE, *_COUNTED)[:_READ_AT_MOST]
        return [_tally(row) for row in rows]

    def made(self, tallies: Sequence[Tally], moment: datetime) -> dict[Name, Tally]:
        """Return what to add to each counter. Add missing rows, outside of a transaction."""
        names = {(one.queue, one.type) for one in tallies}
        known = self._names(self._named(names))
        if known == names:
            return placed(tallies, known)
        known = self._names(self._session.rows(Counter)[:_READ_AT_MOST])
        found = placed(tallies, known)
        if missing := [
            Counter(queue=queue, type=kind, updated_at=moment) for queue, kind in sorted(found.keys() - known)
        ]:
            rows = self._session.rows(Counter)
            self._session.retrying(lambda: rows.bulk_create(missing, ignore_conflicts=True))
        return found

    def locked(self, names: Iterable[Name]) -> list[dict[str, Any]]:
        """Lock and read rows, except those that other sessions have locked."""
        rows = self._named(names).order_by("pk").select_for_update(skip_locked=True)
        return [dict(row) for row in rows.values(*_UNIQUE, *_COUNTED)]

    def add(self, rows: Iterable[dict[str, Any]], found: Mapping[Name, Tally], moment: datetime) -> None:
        """Add to locked rows, in one statement."""
        changed = [Counter(**(row | _added(row, found[row["queue"], row["type"]], moment))) for row in rows]
        self._session.rows(Counter).bulk_create(
            changed, update_conflicts=True, unique_fields=_UNIQUE, update_fields=_COUNTED
        )

    def forget(self, now: datetime) -> None:
        """Delete counters that nothing was added to for a long time."""
        old = self._session.rows(Counter).filter(updated_at__lt=now - FORGOTTEN_AFTER).order_by("pk")
        if places := list(old.select_for_update(skip_locked=True).values_list("pk", flat=True)[:_READ_AT_MOST]):
            self._session.rows(Counter).filter(pk__in=places).delete()

    def _named(self, names: Iterable[Name]) -> QuerySet[Counter]:
        those = (Q(queue=queue, type=kind) for queue, kind in sorted(names))
        return self._session.rows(Counter).filter(reduce(or_, those))

    @staticmethod
    def _names(rows: QuerySet[Counter]) -> Set[Name]:
        return set(rows.values_list(*_UNIQUE))


def _added(row: Mapping[str, Any], tally: Tally, moment: datetime) -> dict[str, Any]:
    found: dict[str, Any] = {name: min(row[name] + getattr(tally, name), _MOST) for name in ENDS}
    for name in _LENGTHS:
        both = merged((_lengths(row, name), getattr(tally, name)))
        found |= {name: written(both.buckets), f"{name}_sum": both.total}
    return found | {"updated_at": max(row["updated_at"], moment)}


def _lengths(row: Mapping[str, Any], name: str) -> Lengths:
    total = row[f"{name}_sum"]
    return Lengths(read(row[name]), total if 0 <= total < _BEYOND_ALL else 0.0)


def _tally(row: Mapping[str, Any]) -> Tally:
    counts = {name: max(row[name], 0) for name in ENDS}
    waited, ran, attempts = (_lengths(row, name) for name in _LENGTHS)
    return Tally(row["queue"], row["type"], **counts, waited=waited, ran=ran, attempts=attempts)
