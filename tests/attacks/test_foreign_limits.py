"""Tests of limits that another program stored: what can be none is ignored, and workers go on."""

from __future__ import annotations

import pytest

from jobqueue.models import StoredLimit
from jobqueue.records import Limit, LimitKind, Scope
from jobqueue.testing.contract.harness import put, take

MOMENT = "2026-01-16T12:00:00Z"
ROW = {"scope": "type", "name": "resize", "number": 1, "reason": "", "author": "", "stored_at": MOMENT}


@pytest.mark.parametrize(
    ("kind", "per"),
    [("rate", 1e308), ("rate", float("inf")), ("rate", -5.0), ("rate", 0.0), ("concurrency", 3.0)],
)
def test_a_window_of_any_length_stops_no_claim(queue, alias, kind, per):
    StoredLimit.objects.using(alias).create(**ROW, kind=kind, per=per, key="")
    put(queue, "resize")
    assert len(take(queue, 1)) == 1
    assert queue.limits.stored() == []


def test_a_key_in_another_encoding_stops_no_claim(queue, foreign):
    row = {**ROW, "kind": "concurrency", "per": 0.0, "key": ""}
    if not foreign.is_sqlite:
        pytest.skip("Postgres has no such text")
    foreign.run(f"INSERT INTO job_queue_limit ({', '.join(row)}) VALUES ({', '.join('?' for _ in row)})", *row.values())
    foreign.run("UPDATE job_queue_limit SET key = CAST(x'ff' AS TEXT)")
    put(queue, "resize")
    assert len(take(queue, 1)) == 1


def test_a_limit_of_an_operator_still_counts(queue):
    limit = Limit(Scope.TYPE, "resize", LimitKind.RATE, 1, 60.0)
    queue.limits.set(limit)
    assert [one.limit for one in queue.limits.stored()] == [limit]
