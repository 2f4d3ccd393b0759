"""Alerts and silences, in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from jobqueue.backends.memory.drafts import MemoryDrafts
from jobqueue.backends.memory.tables import MemoryTables
from jobqueue.backends.ports.alerts import Alerts
from jobqueue.records import Draft
from jobqueue.records.alert import AlertChange, AlertRecord, Silence


class MemoryAlerts(Alerts):
    """Keeps the alerts of this process."""

    def __init__(self, tables: MemoryTables, drafts: MemoryDrafts) -> None:
        self._tables = tables
        self._drafts = drafts
        self._alerts: dict[str, AlertRecord] = {}
        self._silences: dict[str, Silence] = {}

    def open(self) -> list[AlertRecord]:
        with self._tables.lock:
            return sorted((one for one in self._alerts.values() if not one.resolved_at), key=lambda one: one.key)

    def past(self, limit: int = 100) -> list[AlertRecord]:
        with self._tables.lock:
            found = [(one.resolved_at, one) for one in self._alerts.values() if one.resolved_at]
            return [one for _at, one in sorted(found, key=lambda pair: pair[0], reverse=True)][:limit]

    def get(self, alert_id: str) -> AlertRecord | None:
        return self._alerts.get(alert_id)

    def store(self, changes: Sequence[AlertChange], drafts: Sequence[Draft] = ()) -> bool:
        with self._tables.atomic():
            if not all(map(self._is_as_read, changes)):
                return False
            for draft in drafts:
                self._drafts.admit(draft)
            for one in changes:
                if one.before is not None:
                    del self._alerts[one.before.id]
                if one.after is not None:
                    revision = 0 if one.before is None else one.before.revision + 1
                    self._alerts[one.after.id] = replace(one.after, revision=revision)
            return True

    def _is_as_read(self, change: AlertChange) -> bool:
        if change.before is not None:
            return self._alerts.get(change.before.id) == change.before
        return change.after is None or all(one.key != change.after.key for one in self.open())

    def prune(self, age: timedelta, limit: int = 500) -> int:
        with self._tables.lock:
            now = self._tables.now()
            old = [one.id for one in self._alerts.values() if one.resolved_at and one.resolved_at < now - age][:limit]
            over = [key for key, one in self._silences.items() if one.until < now]
            for alert_id in old:
                del self._alerts[alert_id]
            for key in over:
                del self._silences[key]
            return len(old) + len(over)

    def silences(self) -> list[Silence]:
        with self._tables.lock:
            return [one for _key, one in sorted(self._silences.items()) if one.until > self._tables.now()]

    def silence(self, silence: Silence) -> None:
        with self._tables.lock:
            self._silences[silence.key] = replace(silence, made_at=self._tables.now())

    def unsilence(self, key: str) -> bool:
        with self._tables.lock:
            return self._silences.pop(key, None) is not None
