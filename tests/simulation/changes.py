"""Every committed change of every job with its actor, recorded by triggers in the database."""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connections

from jobqueue.clock import from_text

COLUMNS = [
    "status",
    "fence",
    "attempts",
    "max_retries",
    "crash_count",
    "lease_owner",
    "lease_until",
    "cancel_requested_at",
    "scheduled_at",
    "expires_at",
    "updated_at",
    "queue",
    "type",
    "concurrency_key",
]
MOMENTS = {"lease_until", "cancel_requested_at", "scheduled_at", "expires_at", "updated_at"}
#: On Postgres a later number may be committed first; by so many no transaction falls behind.
REACH = 300
EVENTS = {"INSERT": (None, "NEW"), "UPDATE": ("OLD", "NEW"), "DELETE": ("OLD", None)}


@dataclass(frozen=True)
class Change:
    """One row before and after; ``None`` where there was none."""

    actor: str
    id: str
    before: dict[str, Any] | None
    after: dict[str, Any] | None


def _sqlite_row(name: str | None) -> str:
    pairs = ", ".join(f"'{one}', {name}.{one}" for one in COLUMNS)
    return f"json_object({pairs})" if name else "NULL"


def _statements(vendor: str) -> list[str]:
    if vendor == "sqlite":
        made = ["CREATE TABLE change (seq INTEGER PRIMARY KEY, actor TEXT, id TEXT, before TEXT, after TEXT)"]
        for event, (old, new) in EVENTS.items():
            values = f"actor(), {new or old}.id, {_sqlite_row(old)}, {_sqlite_row(new)}"
            made.append(
                f"CREATE TRIGGER change_{event} AFTER {event} ON job_queue BEGIN "
                f"INSERT INTO change (actor, id, before, after) VALUES ({values}); END"
            )
        return made
    note = "INSERT INTO change (actor, id, before, after) VALUES (current_setting('application_name'), "
    return [
        "CREATE TABLE change (seq bigserial PRIMARY KEY, actor text, id text, before text, after text)",
        f"""CREATE FUNCTION note_change() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            IF TG_OP = 'INSERT' THEN {note} NEW.id, NULL, to_jsonb(NEW));
            ELSIF TG_OP = 'UPDATE' THEN {note} NEW.id, to_jsonb(OLD), to_jsonb(NEW));
            ELSE {note} OLD.id, to_jsonb(OLD), NULL); END IF;
            RETURN NULL; END $$""",
        """CREATE TRIGGER note_change AFTER INSERT OR UPDATE OR DELETE ON job_queue
            FOR EACH ROW EXECUTE FUNCTION note_change()""",
    ]


def _undo(vendor: str) -> list[str]:
    if vendor == "sqlite":
        return [*(f"DROP TRIGGER change_{event}" for event in EVENTS), "DROP TABLE change"]
    return ["DROP TRIGGER note_change ON job_queue", "DROP FUNCTION note_change", "DROP TABLE change"]


@contextmanager
def noted(alias):
    """Have the database note every change for a while."""
    vendor = connections[alias].vendor
    with connections[alias].cursor() as cursor:
        for statement in _statements(vendor):
            cursor.execute(statement)
    try:
        yield
    finally:
        connections.close_all()
        with connections[alias].cursor() as cursor:
            for statement in _undo(vendor):
                cursor.execute(statement)


class Changes:
    """Reads what came since the last time."""

    def __init__(self, alias: str) -> None:
        self.alias, self._last = alias, 0
        self._seen: set[int] = set()

    def new(self) -> list[Change]:
        with connections[self.alias].cursor() as cursor:
            statement = "SELECT seq, actor, id, before, after FROM change WHERE seq > %s ORDER BY seq"
            cursor.execute(statement, [self._last - REACH])
            rows = [row for row in cursor.fetchall() if row[0] not in self._seen]
        self._seen.update(row[0] for row in rows)
        self._last = max(self._seen, default=0)
        return [Change(row[1], row[2], _values(row[3]), _values(row[4])) for row in rows]


def _values(text: str | None) -> dict[str, Any] | None:
    if text is None:
        return None
    row = json.loads(text)
    return {name: _moment(row[name]) if name in MOMENTS else row[name] for name in COLUMNS}


def _moment(text: str | None) -> datetime | None:
    return None if text is None else from_text(text)
