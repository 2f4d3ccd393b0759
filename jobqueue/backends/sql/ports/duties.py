"""The duties that one worker does for all: a row for each, taken by compare-and-swap."""

from __future__ import annotations

from dataclasses import fields
from datetime import datetime, timedelta
from typing import Any

from django.db.models import F, Q, QuerySet, Value
from django.db.models.functions import Coalesce

from jobqueue.backends.ports import DutyRoster
from jobqueue.backends.sql.session import Session
from jobqueue.models import Duty
from jobqueue.models.fields import MomentField
from jobqueue.records.duty import PRECEDENCE, TURN, DutyRecord, longest_hold
from jobqueue.records.outcome import MESSAGE_LIMIT, storable

_COLUMNS = tuple(one.name for one in fields(DutyRecord))
#: The wait for a row that another session has just taken or locked.
_SOON = timedelta(seconds=1)


class SqlDutyRoster(DutyRoster):
    """Keeps one row for each duty. A row that another session has locked is left alone."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def begin(self, name: str, owner: str, every: timedelta) -> timedelta | None:
        with self._session.reading():
            now = self._session.now()
            row = self._named(name).values(*_COLUMNS).first()
            if row is not None and (wait := _record(row).wait(owner, now, every)):
                return wait
        if row is None:
            self._add(name, now)
        return None if self._session.transact(lambda: self._take(name, owner, every)) else _SOON

    def _named(self, name: str) -> QuerySet[Duty]:
        return self._session.rows(Duty).filter(pk=name)

    def _add(self, name: str, now: datetime) -> None:
        row = Duty(name=name, owner="", due_at=now, held_until=now, failure="")
        self._session.transact(lambda: self._session.rows(Duty).bulk_create([row], ignore_conflicts=True))

    def _take(self, name: str, owner: str, every: timedelta) -> bool:
        now = self._session.now()
        is_due = Q(due_at__lte=now) | Q(due_at__gt=now + every)
        is_free = Q(owner=owner) | Q(held_until__lte=now) | Q(held_until__gt=now + longest_hold(every))
        free = self._named(name).filter(is_due, is_free).select_for_update(skip_locked=True)
        if not list(free.values_list("pk", flat=True)):
            return False
        return self._named(name).update(owner=owner, held_until=now + TURN) == 1

    def end(self, name: str, owner: str, rest: timedelta, took: timedelta, failure: str = "") -> bool:
        def work() -> bool:
            now = self._session.now()
            since = Coalesce(F("failing_since"), Value(now, output_field=MomentField())) if failure else None
            mine = self._named(name).filter(owner=owner)
            if not list(mine.select_for_update(skip_locked=True).values_list("pk", flat=True)):
                return False
            changes: dict[str, Any] = {
                "due_at": now + rest,
                "held_until": now + rest + PRECEDENCE,
                "ran_at": now,
                "seconds": took.total_seconds(),
                "failure": storable(failure, MESSAGE_LIMIT),
                "failing_since": since,
            }
            return mine.update(**changes) == 1

        return self._session.transact(work)

    def all(self) -> list[DutyRecord]:
        with self._session.reading():
            return [_record(row) for row in self._session.rows(Duty).order_by("name").values(*_COLUMNS)]


def _record(row: dict[str, Any]) -> DutyRecord:
    """Return a row as a record. Another program may have left out the duration."""
    return DutyRecord(**row | {"seconds": row["seconds"] or 0.0})
