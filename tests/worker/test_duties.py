"""Tests of the duties of a worker: each comes round, one that fails harms no other, and one worker does it for all."""

from __future__ import annotations

import logging

import pytest
from django.db import OperationalError

from jobqueue.backends.memory import MemoryBackend
from jobqueue.clock import SYSTEM
from jobqueue.errors import NotMigrated
from jobqueue.testing.clock import NOON
from jobqueue.worker.database_link import DatabaseLink
from jobqueue.worker.supervisor.duties import roster as roster_module
from jobqueue.worker.supervisor.duties.duty import Duty
from jobqueue.worker.supervisor.duties.roster import Roster
from jobqueue.worker.supervisor.duties.sample import Sample
from tests.conftest import ON_SQLITE
from tests.worker.harness import freeze, thaw, until


class Context:
    """The part of a worker's context that duties use."""

    def __init__(self, clock, owner="me", backend=None):
        self.backend = backend or MemoryBackend(clock=clock)
        self.database = DatabaseLink("default", lambda: 0, 60.0, lambda _error: False)
        self.owner = owner
        self.stopping = False


@pytest.fixture
def clock(clock, monkeypatch):
    monkeypatch.setattr(roster_module, "SYSTEM", clock)
    return clock


@pytest.fixture
def context(clock, databases):
    return Context(clock)


def duty(work, *, name="mine", every=30.0, elected=False):
    """Make the class of a duty that calls a function."""
    return type("Made", (Duty,), {"name": name, "every": every, "is_elected": elected, "act": lambda self: work()})


def turns(roster, clock, seconds, step=1.0):
    """Let a worker go on for some time."""
    for _ in range(int(seconds / step)):
        roster.act()
        clock.advance(step)


@pytest.mark.parametrize("elected", [False, True])
def test_a_duty_comes_round_in_its_interval(context, clock, elected):
    done = []
    roster = Roster(context, [duty(lambda: done.append(clock.now()), elected=elected)])
    turns(roster, clock, 95)
    assert [(one - NOON).total_seconds() for one in done] == [0, 30, 60, 90]


@pytest.mark.parametrize("elected", [False, True])
def test_a_duty_can_ask_for_the_exact_moment_of_its_next_turn(context, clock, elected):
    done = []
    roster = Roster(context, [duty(lambda: (done.append(clock.now()), 0.75)[1], elected=elected)])
    turns(roster, clock, 3, step=0.25)
    assert [(one - NOON).total_seconds() for one in done] == [0, 0.75, 1.5, 2.25]


@pytest.mark.parametrize("error", [RuntimeError("no"), NotMigrated("default")], ids=["bug", "not migrated"])
def test_a_duty_that_fails_harms_no_other_and_is_said_once(context, clock, caplog, error):
    done = []

    def fail():
        raise error

    duties = [duty(fail, name="bad", elected=True), duty(lambda: done.append(1), name="good", elected=True)]
    with caplog.at_level(logging.ERROR):
        turns(Roster(context, duties), clock, 65)
    assert len(done) == 3
    assert [one.message for one in caplog.records] == ["The duty 'bad' of this worker failed, and is tried again"]
    bad, good = context.backend.duties.all()
    assert (bad.failure.split(":")[0], bad.failing_since, good.failure) == (type(error).__name__, NOON, "")


def test_while_the_database_is_out_of_reach_no_duty_is_blamed(context):
    def fail():
        raise OperationalError("gone")

    roster = Roster(context, [duty(fail, elected=True)])
    roster.act()
    assert context.database.is_lost
    assert [one.failure for one in context.backend.duties.all()] == [""]


def test_of_two_workers_one_does_the_duty_until_it_is_gone(context, clock):
    done = []
    rosters = {
        owner: Roster(
            Context(clock, owner, context.backend),
            [duty(lambda owner=owner: done.append((owner, (clock.now() - NOON).total_seconds())), elected=True)],
        )
        for owner in ("first", "second")
    }
    for _ in range(100):
        for roster in rosters.values():
            roster.act()
        clock.advance(1)
    assert done == [("first", 0), ("first", 30), ("first", 60), ("first", 90)]
    del rosters["first"]
    turns(rosters["second"], clock, 40)
    assert done[4:] == [("second", 125)]


def test_a_worker_that_stops_leaves_elected_duties_to_others(context, clock):
    done = []
    context.stopping = True
    Roster(context, [duty(lambda: done.append(1), elected=True)]).act()
    assert done == []


def test_each_minute_has_one_sample(context, clock, monkeypatch):
    looks = []
    monkeypatch.setattr(context.backend.metrics, "sample", lambda now: looks.append(now) or len(looks) != 2)
    clock.advance(15)
    turns(Roster(context, [Sample]), clock, 120)
    assert [(one - NOON).total_seconds() for one in looks] == [15, 60, 70, 120]  # the second one met locked rows


@ON_SQLITE
def test_a_duty_is_taken_over_from_a_frozen_worker_and_not_given_back(queue, start_worker):
    often = {"jobqueue.worker.supervisor.duties.sample.Sample.every": 1.0}
    workers = [start_worker(constants=often).until_up() for _ in range(2)]

    def sample():
        return next((one for one in queue.duties.all() if one.name == "sample" and one.ran_at), None)

    before = until(sample)
    holder = next(worker for worker in workers if f":{worker.pid}:" in before.owner)
    freeze(holder.pid)
    began = SYSTEM.monotonic()
    until(lambda: sample().owner != before.owner)
    assert SYSTEM.monotonic() - began < 10
    thaw(holder.pid)
    taken_over = sample()
    until(lambda: (sample().ran_at - taken_over.ran_at).total_seconds() > 2)
    assert sample().owner == taken_over.owner
