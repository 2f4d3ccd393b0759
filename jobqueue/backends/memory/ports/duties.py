"""The duties that one worker does for all, in memory."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from jobqueue.backends.memory.tables import MemoryTables
from jobqueue.backends.ports import DutyRoster
from jobqueue.records.duty import PRECEDENCE, TURN, DutyRecord


class MemoryDutyRoster(DutyRoster):
    """Keeps the duties of this process."""

    def __init__(self, tables: MemoryTables) -> None:
        self._tables = tables
        self._duties: dict[str, DutyRecord] = {}

    def begin(self, name: str, owner: str, every: timedelta) -> timedelta | None:
        with self._tables.lock:
            now = self._tables.now()
            known = self._duties.get(name) or DutyRecord(name=name, owner="", due_at=now, held_until=now)
            if wait := known.wait(owner, now, every):
                return wait
            self._duties[name] = replace(known, owner=owner, held_until=now + TURN)
            return None

    def end(self, name: str, owner: str, rest: timedelta, took: timedelta, failure: str = "") -> bool:
        with self._tables.lock:
            now, known = self._tables.now(), self._duties.get(name)
            if known is None or known.owner != owner:
                return False
            self._duties[name] = replace(
                known,
                due_at=now + rest,
                held_until=now + rest + PRECEDENCE,
                ran_at=now,
                seconds=took.total_seconds(),
                failure=failure,
                failing_since=(known.failing_since or now) if failure else None,
            )
            return True

    def all(self) -> list[DutyRecord]:
        with self._tables.lock:
            return [self._duties[name] for name in sorted(self._duties)]
