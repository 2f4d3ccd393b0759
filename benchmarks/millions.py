"""A table after a busy week: millions of completed jobs, and a few that wait for an operator."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from itertools import product
from typing import Any

from django.db import connection, transaction
from ulid.base32 import ENCODE

from jobqueue.clock import SYSTEM
from jobqueue.models import Metric, Worker
from jobqueue.policy.histogram import written
from jobqueue.policy.stretches import KEPT, begin_of, by_name
from jobqueue.records import Lengths, Tally
from jobqueue.records.metric import ENDS

WEEK = timedelta(days=7)
OWNER = "bench:1:boot"
#: How many kinds of failure there are, and how many rows one transaction stores.
KINDS, CHUNK = 200, 250_000

_TRACEBACK = "Traceback (most recent call last):\n" + 12 * (
    '  File "/srv/shop/images.py", line 123, in resize\n    response = session.get(address, timeout=30)\n'
)
_SERIES = {
    "sqlite": "WITH RECURSIVE n(i) AS (VALUES ({first}) UNION ALL SELECT i + 1 FROM n WHERE i + 1 < {end})",
    "postgresql": "WITH n(i) AS (SELECT generate_series({first}::bigint, {end} - 1))",
}
#: What the two say differently: sixteen digits, a moment of so many milliseconds, and JSON.
_DIGITS = {"sqlite": "printf('%016d', {0})", "postgresql": "lpad(({0})::text, 16, '0')"}
_MOMENT = {
    "sqlite": "strftime('%Y-%m-%dT%H:%M:%fZ', ({0}) / 1000.0, 'unixepoch')",
    "postgresql": "to_timestamp(({0}) / 1000.0)",
}
_JSON = {"sqlite": "{0}", "postgresql": "({0})::jsonb"}

#: The letters of a ULID that tell its millisecond.
_ULID_TIME = " || ".join(
    f"substr('{ENCODE}', CAST((ms >> {shift}) & 31 AS integer) + 1, 1)" for shift in range(45, -1, -5)
)

#: Of a thousand jobs twenty are dead letters, ten are due next month, ten came last and wait, and some were cancelled.
_STATUS = """
CASE WHEN i >= {count} - {count} / 100 THEN 'queued' WHEN i % 50 = 7 THEN 'dead_letter'
     WHEN i % 2500 = 11 THEN 'failed' WHEN i % 100 = 3 THEN 'queued' WHEN i % 100000 = 5 THEN 'in_progress'
     ELSE 'completed' END
"""


def fill(count: int) -> None:
    """Store the jobs of a week, histories of dead letters, metrics, and workers."""
    start = int((SYSTEM.now() - WEEK).timestamp() * 1000)
    step = int(WEEK.total_seconds() * 1000) // count
    for first in range(0, count, CHUNK):
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(_jobs(count, first, min(first + CHUNK, count), start, step))
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_HISTORY)
    _fill_figures(types=max(4, min(100, count // 2_000)))
    _fill_workers()


def _jobs(count: int, first: int, end: int, start: int, step: int) -> str:
    vendor = connection.vendor
    columns = dict(_columns(vendor))
    series = _SERIES[vendor].format(first=first, end=end)
    status = _STATUS.format(count=count)
    rows = f"SELECT i, ms, {status} AS status FROM (SELECT i, {start} + i * {step} AS ms FROM n) AS timed"
    chosen = f"SELECT {', '.join(columns.values())} FROM ({rows}) AS decided"
    into = f"INSERT INTO job_queue ({', '.join(columns)})"
    return f"{series} {into} {chosen}" if vendor == "sqlite" else f"{into} {series} {chosen}"


def _columns(vendor: str) -> Iterator[tuple[str, str]]:
    moment, json = _MOMENT[vendor].format, _JSON[vendor].format
    yield "id", f"{_ULID_TIME} || {_DIGITS[vendor].format('i')}"
    yield "status", "status"
    yield "type", "CASE WHEN i % 3 = 0 THEN 'resize_image' WHEN i % 3 = 1 THEN 'nap' ELSE 'kind_' || (i % 30) END"
    yield "queue", "CASE WHEN i % 4 = 0 THEN 'images' WHEN i % 4 = 1 THEN 'mail' ELSE 'default' END"
    yield "priority", "1 + i % 10"
    yield "tenant", "'tenant_' || (i % 500)"
    yield "idempotency_key", "CASE WHEN i % 2 = 0 THEN 'order-' || i END"
    yield "parent_id", "CASE WHEN i % 1000 = 9 THEN 'parent-' || (i / 1000) END"
    payload = (
        '\'{"image_id": \' || i || \', "width": 800, "user": {"id": \' || (i % 5000) || '
        '\', "name": "Ada Lovelace"}, "tags": ["new", "large"], "url": "https://example.org/\' || i || \'"}\''
    )
    yield "payload", json(payload)
    yield "attempts", "CASE status WHEN 'queued' THEN 0 WHEN 'dead_letter' THEN 3 ELSE 1 END"
    yield "fence", "CASE status WHEN 'queued' THEN 0 WHEN 'dead_letter' THEN 3 ELSE 1 END"
    failed = "status IN ('dead_letter', 'failed') OR i % 97 = 0"
    # As exceptions say it: without their class.
    said = (
        f"'HTTPSConnectionPool(host=''host-' || (i / 50 % {KINDS}) || '.example.org'', port=443): Read timed out. '"
        " || '(read timeout=' || (i % 60) || ')'"
    )
    yield "error", f"CASE WHEN {failed} THEN {said} END"
    yield "error_fingerprint", f"CASE WHEN status = 'dead_letter' THEN 'kind-' || (i / 50 % {KINDS}) END"
    yield "end_reason", "CASE status WHEN 'dead_letter' THEN 'attempts used up' WHEN 'failed' THEN 'cancelled' END"
    yield "created_at", moment("ms")
    yield "updated_at", moment("ms + 3000")
    yield "scheduled_at", moment(f"CASE WHEN status = 'queued' AND i % 100 = 3 THEN ms + {30 * 86_400_000} ELSE ms END")
    yield "started_at", f"CASE WHEN status <> 'queued' THEN {moment('ms + 200')} END"
    yield "completed_at", f"CASE WHEN status NOT IN ('queued', 'in_progress') THEN {moment('ms + 3000')} END"
    yield "lease_owner", f"CASE WHEN status = 'in_progress' THEN '{OWNER}' END"
    yield "lease_until", f"CASE WHEN status = 'in_progress' THEN {moment(f'ms + {365 * 86_400_000}')} END"
    progress = "'{\"percent\": ' || (i % 100) || '}'"
    yield "progress", f"CASE WHEN status = 'in_progress' THEN {json(progress)} END"
    done = "'{\"done\": true}'"
    yield "result", f"CASE WHEN status = 'completed' THEN {json(done)} END"


_HISTORY = f"""
INSERT INTO job_queue_attempt
       (job_id, fence, attempt, owner, ending, error_class, message, traceback, duration, ended_at)
SELECT id, number, number, '{OWNER}', 'failed', 'ConnectionError', error, '{_TRACEBACK}', 1.5, updated_at
  FROM job_queue CROSS JOIN (SELECT 1 AS number UNION ALL SELECT 2 UNION ALL SELECT 3) AS numbers
 WHERE status = 'dead_letter'
"""


def _fill_figures(types: int) -> None:
    """Store metrics of the given types in half as many queues: 5,000 pairs of them in a full run.

    One queue always has all types. Each stretch has as many pairs again from the other queues, which is the most that a
    stretch distinguishes.
    """
    now, columns = SYSTEM.now(), list(_figures(types))
    for span, kept in KEPT.items():
        shown = min(kept, WEEK, timedelta(seconds=span * 200))
        for place in range(int(shown.total_seconds()) // span):
            at = begin_of(now, span) - timedelta(seconds=span * place)
            rows = [Metric(span=span, begins_at=at, **values) for values in columns[place % len(columns)]]
            Metric.objects.bulk_create(rows, batch_size=1_000)


def _figures(types: int) -> Iterator[list[dict[str, Any]]]:
    """Return the rows of one stretch after another, until each pair was in one."""
    kinds = ["resize_image", "nap", *(f"kind_{number}" for number in range(2, types))]
    queues = ["mail", "default", *(f"queue_{number}" for number in range(3, types // 2))]
    busy, others = [("images", kind) for kind in kinds], list(product(queues, kinds))
    spread = Lengths(dict.fromkeys(range(20, 60), 20), 400.0)
    for place in range(len(queues)):
        pairs = [*busy, *others[place :: len(queues)]]
        yield [
            _columns_of(one)
            for one in by_name(Tally(*pair, 780, 15, 5, 0, 0, spread, spread) for pair in pairs).values()
        ]


def _columns_of(tally: Tally) -> dict[str, Any]:
    times = {"waited": tally.waited, "ran": tally.ran}
    return (
        {name: getattr(tally, name) for name in ("queue", "type", *ENDS)}
        | {name: written(one.buckets) for name, one in times.items()}
        | {f"{name}_count": one.number for name, one in times.items()}
        | {f"{name}_sum": one.total for name, one in times.items()}
    )


def _fill_workers() -> None:
    now = SYSTEM.now()
    about = {"host": "bench", "version": "1", "state": "running", "started_at": now, "seen_at": now, "slots": 50}
    owners = [OWNER, *(f"bench:{number}:boot" for number in range(2, 21))]
    Worker.objects.bulk_create(
        Worker(owner=owner, name=owner, pid=1, processes=1, busy=3, types=["resize_image", "nap"], **about)
        for owner in owners
    )
