"""Tests of jobs that appear behind a floor: claims come in the plain order of what is there, however late it came."""

from __future__ import annotations

from contextlib import ExitStack, closing
from datetime import timedelta

import psycopg
import pytest
from django.db import connections
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from jobqueue.models import Job
from jobqueue.policy.settling import completed, released
from jobqueue.records import Amendment
from jobqueue.states import JobStatus
from jobqueue.testing import VirtualClock
from jobqueue.testing.contract.harness import failing, put, request
from tests.conftest import TABLES, make_sql_backend
from tests.contract.lengths import ASKED, length
from tests.sql.floors.harness import look_through_all, raise_at_once, sections
from tests.waking.test_silence import address

AGO = st.integers(-90, 90).map(lambda seconds: timedelta(seconds=seconds))
PRIORITIES = st.sampled_from([1, 5])
QUEUES = st.sampled_from(["default", "mail"])
WORKERS = st.integers(0, 1)
INSERT = """
INSERT INTO job_queue (id, type, queue, priority, payload, scheduled_at, created_at, updated_at)
VALUES (%s, 'resize', %s, %s, '{}', %s, %s, %s)
"""


class LateMachine(RuleBasedStateMachine):
    """Two workers with floors of their own; jobs become due, are committed, given back and moved at any time."""

    alias = "postgres"
    raised = 0

    @initialize()
    def begin(self):
        for table in TABLES:
            table.objects.using(self.alias).all().delete()
        self.clock, self.made, self.held = VirtualClock(), 0, []
        self.workers = [make_sql_backend(self.alias, self.clock) for _ in range(2)]
        self.stack, self.late = ExitStack(), []
        for backend in 3 * self.workers:  # so that the floors are up from the first claim on
            assert not backend.cycle("nobody", (), request()).claims

    @rule(ago=AGO, priority=PRIORITIES, queue=QUEUES, count=st.integers(1, 3))
    def enqueue(self, ago, priority, queue, count):
        for _ in range(count):
            self.made += 1
            at = self.clock.now() - ago
            put(self.workers[0], id=f"{self.made:026}", priority=priority, queue=queue, scheduled_at=at)

    @rule(ago=AGO, priority=PRIORITIES, queue=QUEUES)
    def insert_and_commit_later(self, ago, priority, queue):
        if self.alias != "postgres" or len(self.late) > 3:
            return
        other = self.stack.enter_context(closing(psycopg.connect(address())))
        self.made += 1
        at = self.clock.now() - ago
        other.execute(INSERT, [f"{self.made:026}", queue, priority, at, at, at])
        self.late.append(other)

    @rule()
    def commit(self):
        if self.late:
            self.late.pop(0).commit()

    @rule(worker=WORKERS, limit=st.integers(1, 4))
    def claim(self, worker, limit):
        backend = self.workers[worker]
        expected = self._first(limit)
        claims = backend.cycle(f"worker-{worker}", (), request(limit)).claims
        assert [one.id for one in claims] == expected
        self.held += claims
        if self.alias == "postgres":
            type(self).raised += bool(sections(backend._looks.floors))

    @rule(worker=WORKERS, end=st.sampled_from([completed, released, failing]), place=st.integers(0, 9))
    def settle(self, worker, end, place):
        if self.held:
            claim = self.held.pop(place % len(self.held))
            assert not self.workers[worker].cycle(claim.owner, [end(claim)]).refused

    @rule(ago=AGO, priority=PRIORITIES)
    def move_the_last_in_order(self, ago, priority):
        found = list(self._queued().order_by("-priority", "-scheduled_at").values_list("pk", flat=True)[:1])
        amendment = Amendment(scheduled_at=self.clock.now() - ago, priority=priority)
        assert len(self.workers[0].operator.amend(found, amendment).done) == len(found)

    @rule(seconds=st.integers(1, 60))
    def time_passes(self, seconds):
        self.clock.advance(seconds)

    def teardown(self):
        if hasattr(self, "stack"):
            self.stack.close()

    def _queued(self):
        return Job.objects.using(self.alias).filter(status=JobStatus.QUEUED.value)

    def _first(self, limit):
        """Return the first jobs in the plain order, read from the table."""
        due = self._queued().filter(scheduled_at__lte=self.clock.now())
        return list(due.order_by("priority", "scheduled_at", "pk").values_list("pk", flat=True)[:limit])


@pytest.mark.timeout(0 if ASKED else 600)
@pytest.mark.parametrize(
    ("alias", "most"),
    [
        pytest.param("default", 1, marks=pytest.mark.sqlite),
        pytest.param("postgres", 1, marks=pytest.mark.postgres),
        pytest.param("postgres", 6, marks=pytest.mark.postgres),
    ],
    ids=["sqlite", "postgres", "postgres in six sections"],
)
def test_what_comes_late_is_claimed_in_its_place(databases, monkeypatch, alias, most):
    if alias == "postgres":
        raise_at_once(monkeypatch, most)
        look_through_all(monkeypatch)
    machine = type("LateMachineOnOne", (LateMachine,), {"alias": alias})
    run_state_machine_as_test(machine, settings=length(30 if most == 1 else 20))
    assert machine.raised > 10 or alias == "default"  # how many claims begin behind floors is left to chance
    connections[alias].close()
