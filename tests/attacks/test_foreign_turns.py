"""Tests of what another program may store about turns: workers go on, and nobody starves."""

from __future__ import annotations

import pytest

from jobqueue.models import Turn
from jobqueue.records import QueueOptions
from jobqueue.testing.contract.fairness import fair
from jobqueue.testing.contract.harness import draft, put_all
from tests.attacks.test_markup import HOSTILE

MOMENT = "2026-01-16T12:00:00Z"
LINE = {"queue": "default", "priority": 5, "key": "a", "count": 1, "served_at": MOMENT}


def served(queue, count):
    claims = [one for _ in range(count) for one in queue.cycle("me", (), fair(1)).claims]
    return {queue.jobs.get(one.id).fair_key for one in claims}


@pytest.mark.parametrize(
    ("finish", "clock"), [(1e308, 0.0), (-1e308, 1e308), (1e11, 1e11), (float("inf"), 0.0), (0.0, float("-inf"))]
)
def test_virtual_times_of_any_size_starve_nobody(queue, alias, finish, clock):
    Turn.objects.using(alias).create(**LINE, finish=finish, clock=clock)
    put_all(queue, *(draft(fair_key=key) for key in "aaabbb"))
    assert served(queue, 4) == {"a", "b"}
    options = QueueOptions(fair="tenant")
    assert len(queue.turns.shares("default", options)) == 2


def test_a_line_in_another_encoding_stops_no_claim(queue, foreign):
    if not foreign.is_sqlite:
        pytest.skip("Postgres has no such text")
    row = LINE | {"finish": 1.0, "clock": 0.0}
    foreign.run(f"INSERT INTO job_queue_turn ({', '.join(row)}) VALUES ({', '.join('?' for _ in row)})", *row.values())
    foreign.run("UPDATE job_queue_turn SET key = CAST(x'ff' AS TEXT)")
    put_all(queue, *(draft(fair_key=key) for key in "ab"))
    assert served(queue, 2) == {"a", "b"}
    assert queue.turns.shares("default", QueueOptions(fair="tenant"))


def test_any_value_takes_turns(queue):
    keys = [text[:255] for text in HOSTILE] if isinstance(HOSTILE, (list, tuple)) else [HOSTILE[:255]]
    keys += [" ", "\t", "%", "_", "\U0010ffff" * 60, "é", "e\u0301", "A", "a", '{"a":1}']
    put_all(queue, *(draft(fair_key=key) for key in [*keys, *keys]), draft(fair_key=None), draft(fair_key=""))
    taken = served(queue, len(keys) + 1)
    assert taken - {None, ""} == set(keys)
    assert len(served(queue, len(keys) + 1)) >= len(set(keys))
