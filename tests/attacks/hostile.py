"""Hostile values for every column, and rows that contain one of them."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from datetime import timedelta
from itertools import count, cycle, product
from typing import Any

from django.db import connections

from jobqueue.clock import SYSTEM, to_text
from jobqueue.ids import new_id
from jobqueue.models import (
    Alert,
    Attempt,
    Counter,
    Duty,
    Gauge,
    Job,
    KnownError,
    Metric,
    Order,
    OrderedJob,
    OrderPart,
    Pause,
    Relay,
    SavedSearch,
    Schedule,
    Silence,
    Start,
    StoredLimit,
    Throttle,
    Worker,
)
from jobqueue.policy.stretches import KEPT, begin_of

_MODELS = (
    *(Job, Attempt, Pause, Worker, Metric, Relay, Order, OrderPart, OrderedJob, SavedSearch, KnownError),
    *(Alert, Counter, Duty, Gauge, Schedule, Silence, Start, StoredLimit, Throttle),
)
TABLES = {model._meta.db_table: model for model in _MODELS}
COLUMNS = {table: [str(field.column) for field in model._meta.concrete_fields] for table, model in TABLES.items()}


@dataclass(frozen=True)
class Text:
    """Bytes that are stored as text, which on SQLite need not be UTF-8."""

    bytes: bytes


def deep(levels: int, opening: str = "[", closing: str = "]") -> str:
    """Nest JSON in itself."""
    return '{"x": ' + opening * levels + ("1" if opening != "[" else "") + closing * levels + "}"


BLOBS = {
    "no bytes": b"",
    "bytes": b"abc",
    "bytes that are no UTF-8": b"\xff\xfe",
    "a NUL byte": b"\x00",
    "1 MB of bytes": b"\xfe" * 1_000_000,
}
NO_TEXTS = {
    "text of FFFE": Text(b"\xff\xfe"),
    "text with a FF": Text(b"a\xffb"),
    "half of a surrogate pair in text": Text(b"\xed\xa0\x80"),
}
TEXTS = {
    "NULL": None,
    "empty": "",
    "a blank": " ",
    "300 characters": "x" * 300,
    "1,000,000 characters": "y" * 1_000_000,
    "lines": "a\nb\r\nc\u2028d",
    "an escape sequence": "\x1b[2J\x1b]0;owned\x07",
    "right to left": "abc\u202egnp.exe\u2066",
    "NUL": "a\0b",
    "a path": "../../../etc/passwd",
    "a slash": "relay/x",
    "percent signs": "%s%(x)s{0}%2F_2F",
    "SQL": "'; DROP TABLE job_queue; --",
    "markup": "<script>alert(1)</script>",
    "an emoji": "\N{PILE OF POO}" * 70,
    "surrogates": "\ud800",
}
NUMBERS = {
    "2**31": 2**31,
    "2**31 - 1": 2**31 - 1,
    "2**63 - 1": 2**63 - 1,
    "-2**63": -(2**63),
    "1e308": 1e308,
    "infinity": float("inf"),
    "-infinity": float("-inf"),
    "not a number": float("nan"),
    "999,999,998": 999_999_998,
    "999,999,999": 999_999_999,
    "1,000,000,000": 1_000_000_000,
    "-1": -1,
    "0": 0,
    "2": 2,
    "a half": 0.5,
    "a word": "abc",
    "digits": "12",
    "6,000 digits": "9" * 6_000,
}
MOMENTS = {
    "a year 0000": "0000-01-16T12:00:00Z",
    "the first moment": "0001-01-02T00:00:00.1Z",
    "the last moment": "9999-12-29T23:59:59Z",
    "past all time zones": "9999-12-31T23:59:59Z",
    "a year 12026": "12026-01-16T12:00:00Z",
    "a 30th of February": "2026-02-30T00:00:00Z",
    "an offset": "2026-01-16T14:00:00+02:00",
    "an offset and a Z": "2026-01-16T14:00:00+02:00Z",
    "24:00": "2026-01-16T24:00:00Z",
    "a leap second": "2016-12-31T23:59:60Z",
    "1,000 decimals": f"2026-01-16T12:00:00.{'1' * 1_000}Z",
    "no zone": "2026-01-16T12:00:00",
    "a moment with a NUL": "2026-01-16T12:00:00Z\0Z",
    "now": "now",
}
JSON = {
    "a number of 5,000 digits": f'{{"x": 1{"0" * 5_000}}}',
    "a bare number of 6,000 digits": "9" * 6_000,
    "1,500 levels": deep(1_500),
    "6,000 levels of objects": deep(6_000, '{"x":', "}"),
    "100,000 levels": deep(100_000),
    "NaN": '{"x": NaN}',
    "Infinity": '{"x": -Infinity}',
    "1e999": '{"x": 1e999, "y": -1e999}',
    "keys twice": '{"x": 1, "x": {"y": 2, "y": 3}}',
    "null": "null",
    "true": "true",
    "a number": "5",
    "a fraction": "0.5",
    "a string": '"abc"',
    "a list": '[1, [2], {"a": null}]',
    "an empty list": "[]",
    "an empty key": '{"": {"": ""}}',
    "escaped NUL": '{"x": "\\u0000", "\\u0000": 1}',
    "half of a surrogate pair": '{"x": "\\ud800", "\\udfff": 1}',
    "5 MB": '{"x": "' + "a" * 5_000_000 + '"}',
    "100,000 keys": "{" + ",".join(f'"k{number}": {number}' for number in range(100_000)) + "}",
    "of another shape": '{"a": "b"}',
    "null behind a number": '{"1": null, "2": "b", "-1": [1]}',
    "a bucket beyond all": '{"99999999999999999999": 1e300}',
    "surroundings of other types": '{"language": 7, "traceparent": {"a": 1}, "time_zone": [1], "first": 5}',
    "surroundings with nothing in them": '{"first": {"payload": null, "payload_version": "x"}, "language": "../../x"}',
    "progress of other types": '{"percent": "abc", "note": 7, "steps": {"a": 1}, "at": "now", "figures": [1]}',
    "progress beyond all": '{"percent": 1e999, "done": -5, "total": 0}',
    "text of FFFE in JSON": Text(b'{"x": "\xff\xfe"}'),
    "JSON as bytes": b'{"x": 1}',
    "bytes of no JSON": b"\xff\xfe{",
}
EVERYWHERE = BLOBS | NO_TEXTS | NUMBERS
LARGE = frozenset({"1 MB of bytes", "1,000,000 characters", "5 MB", "100,000 keys", "100,000 levels"})


def values_for(table: str, column: str) -> dict[str, Any]:
    """List what is tried in a column, by name; what the database refuses is held there."""
    kind = TABLES[table]._meta.get_field(field_name(table, column)).get_internal_type()
    if kind == "JSONField":
        return JSON | {"NULL": None} | BLOBS | NO_TEXTS
    if kind == "MomentField":
        return MOMENTS | {"NULL": None, "empty": ""} | EVERYWHERE
    extra = {"a queue": "queue", "a capital": "Queue", "a type": "type"} if table == Pause._meta.db_table else {}
    return TEXTS | EVERYWHERE | extra


def field_name(table: str, column: str) -> str:
    """Say what Django calls a column."""
    return next(field.name for field in TABLES[table]._meta.concrete_fields if field.column == column)


# The rows

NOW = "now"
PAST = "2026-01-16T12:00:00Z"
FAR = "9000-01-01T00:00:00Z"
#: What a job is before it is forged, by the name of the state it is in.
STATES: dict[str, dict[str, Any]] = {
    "queued": {"status": "queued"},
    "failing": {"status": "queued", "type": "shout", "payload": '{"text": "no"}'},
    "expired": {"status": "in_progress", "lease_owner": "nobody", "lease_until": PAST, "fence": 1, "attempts": 1},
    "held": {"status": "in_progress", "lease_owner": "elsewhere", "lease_until": FAR, "fence": 1, "attempts": 1},
    "completed": {"status": "completed", "completed_at": PAST, "result": "{}", "fence": 1, "attempts": 1},
    "failed": {"status": "failed", "completed_at": PAST, "end_reason": "cancelled"},
    "dead_letter": {
        "status": "dead_letter",
        "completed_at": PAST,
        "end_reason": "attempts used up",
        "error": "OSError: disk on fire",
        "error_fingerprint": "f" * 64,
        "fence": 3,
        "attempts": 3,
    },
}
#: A job that fails may be tried a billion times, if that is what its row says.
ENDLESS = ("attempts", "max_retries")
_JOB = {"type": "swallow", "queue": "default", "payload": '{"x": 1}', "priority": 1}
_numbers = count(1)

#: Where ordinary jobs are put: a worker adds to the figures of each.
QUEUES = ("default", *(f"q{number}" for number in range(7)))
#: The figures that such a worker adds to, by length, queue and type.
_FIGURES = cycle(product(KEPT, ("", *QUEUES), ("", "swallow")))


def job_row(state: str = "queued", **changes: Any) -> dict[str, Any]:
    """Make a job as a foreign program may: in a state, at the head of the queue."""
    moments = dict.fromkeys(("scheduled_at", "created_at", "updated_at"), PAST)
    return {"id": new_id(), **_JOB, **moments, **STATES[state], **changes}


def row_of(table: str, state: str = "queued") -> dict[str, Any]:
    """Make a row of any table, with nothing amiss."""
    if table == Job._meta.db_table:
        return job_row(state)
    number, now = next(_numbers), SYSTEM.now()
    span, queue, kind = next(_FIGURES)
    rows: dict[type, dict[str, Any]] = {
        Attempt: {"job_id": new_id(), "fence": 1, "attempt": 1, "owner": "nobody", "ending": "failed",
                  "error_class": "OSError", "message": "disk on fire", "traceback": "", "ended_at": PAST},
        Pause: {"scope": "queue", "name": f"paused-{number}", "reason": "", "paused_at": PAST},
        Worker: {"owner": f"host:{number}:x", "name": "x", "host": "host", "pid": 1, "version": "0", "state": "running",
                 "started_at": PAST, "seen_at": to_text(now), "processes": 1, "slots": 10, "busy": 0, "queues": None,
                 "types": '["swallow"]'},
        Metric: {"span": span, "begins_at": to_text(begin_of(now, span)), "queue": queue, "type": kind, "completed": 0,
                 "retried": 0, "dead_lettered": 0, "stopped": 0, "lost": 0, "waited_count": 0, "waited_sum": 0,
                 "ran_count": 0, "ran_sum": 0, "waited": "{}", "ran": "{}"},
        Counter: {"queue": f"queue {number}", "type": kind, "completed": 0, "retried": 0, "dead_lettered": 0,
                  "stopped": 0, "lost": 0, "waited_sum": 0, "ran_sum": 0, "attempts_sum": 0, "waited": "{}",
                  "ran": "{}", "attempts": "{}", "updated_at": to_text(now)},
        Relay: {"source": new_id(), "is_own": False, "batch": "", "refused": "{}", "relayed_at": None, "lost_at": None,
                "error": ""},
        Order: {"id": new_id(), "state": "running", "verb": "retry", "user_id": "1", "title": "Retry 2 jobs",
                "instruction": '{"verb": "retry", "user_id": "1", "user_name": "ada"}', "wanted": "{}",
                "is_selection": False, "back": "/admin/", "account": '{"statuses": ["queued"], "at": 1, "found": {}}',
                "steps": 1, "total": 2, "done": 1, "left_alone": 0, "seal": "x:y", "job_id": new_id(), "asked_at": PAST,
                "counted_at": PAST, "given_at": PAST, "starts_at": PAST, "began_at": PAST, "ended_at": None,
                "why_ended": ""},
        OrderPart: {"order_id": new_id(), "first": 0, "ids": '["x"]'},
        OrderedJob: {"order_id": new_id(), "job_id": new_id()},
        SavedSearch: {"user_id": "1", "listed": "job", "name": f"mine {number}", "query": "q=type%3Aswallow"},
        KnownError: {"fingerprint": f"{number:064}", "release": "1.0", "first_at": PAST, "retried_at": PAST},
        Alert: {"id": new_id(), "key": f"slow:{number}", "state": "firing", "level": 2,
                "facts": '{"cause": "slow", "level": "error", "sentence": "x", "page": "job", "job": "x"}',
                "began_at": PAST, "seen_at": PAST, "fired_at": PAST, "missing_since": PAST, "told_at": PAST,
                "reminded_at": PAST, "resolved_at": None, "revision": 0, "sent": '[["ops", "fired", "x"]]'},
        Silence: {"key": f"slow:{number}", "until": to_text(now + timedelta(hours=1)), "reason": "why", "author": "ada",
                  "made_at": PAST},
        Duty: {"name": f"duty {number}", "owner": "nobody", "due_at": PAST, "held_until": PAST, "ran_at": PAST,
               "seconds": 0.1, "failure": "", "failing_since": PAST},
        Gauge: {"queue": f"bounded {number}", "queued": 1, "sampled_at": to_text(now), "shed": 1, "shed_at": PAST},
        Schedule: {"id": new_id(), "name": f"slots {number}", "type": "swallow", "rule": "every 1h", "zone": "UTC",
                   "payload": '{"x": 1}', "payload_version": 1, "options": '{"queue": "q1"}', "start_at": None,
                   "end_at": None, "max_runs": None, "jitter": 0.0, "missed": "once", "missed_cap": 100,
                   "overlap": "queue", "while_paused": "drop", "origin": "code", "declared": "{}", "revision": 1,
                   "runs": 0, "last_slot_at": PAST, "next_at": PAST, "missed_at": None, "last_job_id": None,
                   "paused_at": None, "pause_reason": "", "left_code_at": None, "trouble": ""},
        Start: {"place": "type swallow concurrency", "key": "", "count": 1, "ends_at": to_text(now)},
        StoredLimit: {"scope": "type", "name": "swallow", "kind": "concurrency", "number": 5, "per": 0.0,
                      "key": f"x{number}", "reason": "", "author": "", "stored_at": PAST},
        Throttle: {"key": f"key {number}", "type": "swallow", "job_id": new_id(), "until": to_text(now)},
    }  # fmt: skip
    return rows[TABLES[table]]


class Refused(Exception):
    """The database does not take the row."""


class Taken(Exception):
    """Another row is in the way."""


class Vandal:
    """A foreign program with a connection of its own, to the database of an alias."""

    def __init__(self, alias: str) -> None:
        self.is_sqlite = connections[alias].vendor == "sqlite"
        self._mark = "?" if self.is_sqlite else "%s"
        if self.is_sqlite:
            self.connection: Any = sqlite3.connect(connections[alias].settings_dict["NAME"], isolation_level=None)
            self.connection.text_factory = bytes
            self.connection.execute("PRAGMA busy_timeout = 10000")
        else:
            import psycopg

            given = connections[alias].get_connection_params()
            names = {"host", "port", "user", "password", "dbname"}
            kept = {key: value for key, value in given.items() if key in names}
            self.connection = psycopg.connect(**kept, autocommit=True)

    def close(self) -> None:
        self.connection.close()

    def run(self, statement: str, *values: Any) -> list[Any]:
        """Run a statement whose values are marked with ``?``."""
        cursor = self.connection.execute(statement.replace("?", self._mark), values or None or ())
        return cursor.fetchall() if cursor.description else []

    def store(self, table: str, row: dict[str, Any]) -> Any:
        """Store a row, and return how to find it. Raises Refused or Taken."""
        places, values = [], []
        for value in row.values():
            places.append("CAST(? AS TEXT)" if isinstance(value, Text) and self.is_sqlite else "?")
            values.append(value.bytes if isinstance(value, Text) else value)
        key = "rowid" if self.is_sqlite else TABLES[table]._meta.pk.column
        statement = f"INSERT INTO {table} ({', '.join(row)}) VALUES ({', '.join(places)}) RETURNING {key}"
        try:
            ((found,),) = self.run(statement, *values)
        except (sqlite3.Error, UnicodeError, OverflowError, ValueError) as error:
            raise (Taken if "UNIQUE" in str(error) else Refused)(str(error)) from error
        except Exception as error:
            if not hasattr(error, "sqlstate"):
                raise
            raise (Taken if error.sqlstate == "23505" else Refused)(str(error)) from error
        return found

    def jobs(self) -> dict[Any, dict[str, Any]]:
        """Read what is left of every job, by how to find it."""
        key = "rowid" if self.is_sqlite else "id"
        names = ("status", "id", "type", "queue", "error", "end_reason", "scheduled_at", "lease_until")
        rows = self.run(f"SELECT {key}, {', '.join(names)} FROM job_queue")
        return {row[0]: dict(zip(names, map(_text, row[1:]), strict=True)) for row in rows}

    def clear(self) -> None:
        """Empty every table, and forget the highest numbers there were, which SQLite keeps."""
        for table in TABLES:
            self.run(f"DELETE FROM {table}")
        if self.is_sqlite:
            self.run("DELETE FROM sqlite_sequence WHERE name LIKE 'job_queue%'")


def _text(value: Any) -> Any:
    return value.decode(errors="backslashreplace") if isinstance(value, bytes) else value


def vandal(alias: str) -> Any:
    """Open a foreign program's connection for a while."""
    return closing(Vandal(alias))


def soon(seconds: float) -> str:
    """Write a moment that is so many seconds away."""
    return to_text(SYSTEM.now() + timedelta(seconds=seconds))
