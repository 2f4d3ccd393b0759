"""Alerts and silences in tables."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from django.db.models import QuerySet

from jobqueue.backends.ports.alerts import Alerts
from jobqueue.backends.sql.drafts import Drafts
from jobqueue.backends.sql.session import Session
from jobqueue.models import Alert
from jobqueue.models import Silence as SilenceRow
from jobqueue.records import Draft
from jobqueue.records.alert import AlertChange, AlertRecord, AlertState, SentTo, Silence, facts_of
from jobqueue.records.outcome import storable

#: More alerts are never open, unless another program stored them.
_MOST_OPEN = 5_000
_MOMENTS = ("began_at", "seen_at", "fired_at", "missing_since", "told_at", "reminded_at", "resolved_at")
_COLUMNS = ("id", "key", "state", "level", "facts", "revision", "sent", *_MOMENTS)
_LAST_REVISION = 2**31 - 1
_MOST_SENT, _LONGEST_REASON = 20, 500


class _NotAsRead(Exception):
    """An alert was changed since it was read."""


class SqlAlerts(Alerts):
    """Keeps a row for each alert. The revision of a row tells whether it was changed since it was read."""

    def __init__(self, session: Session, drafts: Drafts) -> None:
        self._session = session
        self._drafts = drafts

    @property
    def _rows(self) -> QuerySet[Alert]:
        return self._session.rows(Alert)

    def _records(self, rows: QuerySet[Alert]) -> list[AlertRecord]:
        known = rows.filter(state__in=[one.value for one in AlertState])
        with self._session.reading():
            return [_record(row) for row in known.values(*_COLUMNS)]

    def open(self) -> list[AlertRecord]:
        return self._records(self._rows.filter(resolved_at__isnull=True).order_by("key"))[:_MOST_OPEN]

    def past(self, limit: int = 100) -> list[AlertRecord]:
        return self._records(self._rows.filter(resolved_at__isnull=False).order_by("-resolved_at"))[:limit]

    def get(self, alert_id: str) -> AlertRecord | None:
        found = self._records(self._rows.filter(pk=alert_id))
        return found[0] if found else None

    def store(self, changes: Sequence[AlertChange], drafts: Sequence[Draft] = ()) -> bool:
        def work() -> bool:
            for one in sorted(changes, key=_key):  # two workers take the rows in the same order
                self._store(one)
            if drafts:
                self._drafts.admit_all(drafts)
            return True

        try:
            with self._session.reading():
                return self._session.transact(work)
        except _NotAsRead:
            return False

    def _store(self, change: AlertChange) -> None:
        before, after = change.before, change.after
        if before is None and after is not None:
            made = Alert(**_values(after))
            self._rows.bulk_create([made], ignore_conflicts=True)
            done = self._rows.filter(pk=after.id).exists()
        elif before is not None:
            mine = self._rows.filter(pk=before.id, revision=before.revision, resolved_at__isnull=True)
            if after is None:
                done = mine.delete()[0] == 1
            else:
                following = before.revision % _LAST_REVISION + 1
                done = mine.update(**_values(after) | {"revision": following}) == 1
        else:
            done = True
        if not done:
            raise _NotAsRead

    def prune(self, age: timedelta, limit: int = 500) -> int:
        now = self._session.now()

        def work() -> int:
            old = self._rows.filter(resolved_at__lt=now - age).order_by("resolved_at").values_list("pk", flat=True)
            gone = self._rows.filter(pk__in=list(old[:limit])).delete()[0]
            over = self._session.rows(SilenceRow).filter(until__lt=now).values_list("pk", flat=True)[:limit]
            return gone + self._session.rows(SilenceRow).filter(pk__in=list(over)).delete()[0]

        return self._session.transact(work)

    def silences(self) -> list[Silence]:
        with self._session.reading():
            rows = self._session.rows(SilenceRow).filter(until__gt=self._session.now()).order_by("key")
            return [Silence(**row) for row in rows.values("key", "until", "reason", "author", "made_at")[:_MOST_OPEN]]

    def silence(self, silence: Silence) -> None:
        row = {
            "until": silence.until,
            "reason": storable(silence.reason, _LONGEST_REASON),
            "author": storable(silence.author, 255),
            "made_at": self._session.now(),
        }
        self._session.transact(
            lambda: self._session.rows(SilenceRow).update_or_create(key=storable(silence.key, 100), defaults=row)
        )

    def unsilence(self, key: str) -> bool:
        rows = self._session.rows(SilenceRow).filter(key=storable(key, 100))
        return self._session.transact(lambda: bool(rows.delete()[0]))


def _key(change: AlertChange) -> str:
    return (change.before or change.after).key  # type: ignore[union-attr]  # one of both is set


def _values(one: AlertRecord) -> dict[str, Any]:
    return {
        "id": one.id,
        "key": one.key,
        "state": one.state.value,
        "level": one.level,
        "facts": {name: _storable(value) for name, value in one.facts.document().items()},
        "revision": one.revision,
        "sent": [[sent.channel, sent.news, sent.job_id] for sent in one.sent[-_MOST_SENT:]],
        **{name: getattr(one, name) for name in _MOMENTS},
    }


def _storable(value: Any) -> Any:
    if isinstance(value, list):
        return [_storable(one) for one in value]
    return storable(value, 2_000) if isinstance(value, str) else value


def _record(row: dict[str, Any]) -> AlertRecord:
    """Return a row as a record. Another program may have stored any JSON."""
    sent = row["sent"] if isinstance(row["sent"], list) else []
    known = [one for one in sent if isinstance(one, list) and len(one) == 3 and all(isinstance(x, str) for x in one)]
    read = {
        "state": AlertState(row["state"]),
        "facts": facts_of(row["facts"]),
        "sent": tuple(SentTo(*x) for x in known),
    }
    return AlertRecord(**row | read)
