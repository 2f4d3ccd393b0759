"""Tests of the metrics that a worker counts each minute, and of their storage."""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta

import pytest
from django.db import DataError, OperationalError

from jobqueue.backends.memory import MemoryBackend
from jobqueue.clock import SYSTEM
from jobqueue.errors import DatabaseBusy, NotMigrated
from jobqueue.policy.histogram import bucket
from jobqueue.policy.settling import completed, released, settled
from jobqueue.records import Again, Alone, Dead, Ending, Failure, Later, Lengths, OverdueLease, Stopped, Tally
from jobqueue.records.metric import MOST_ATTEMPTS
from jobqueue.testing.clock import NOON, VirtualClock
from jobqueue.worker.database_link import DatabaseLink
from jobqueue.worker.supervisor.claims import HeldClaim, PendingSettlement
from jobqueue.worker.supervisor.metrics import buffer as metrics_buffer
from jobqueue.worker.supervisor.metrics import flush as metrics_flush
from jobqueue.worker.supervisor.metrics.buffer import MetricsBuffer
from jobqueue.worker.supervisor.metrics.flush import MetricsFlush
from tests.worker.test_units import claim_of

FAILURE = Failure.of(Ending.FAILED)
MINUTE = timedelta(minutes=1)


@pytest.fixture
def buffer():
    """Books that go by a clock on which it is noon."""
    made = MetricsBuffer()
    made.set_clock(NOON + timedelta(seconds=30))
    return made


def finished(decision=None, ran=1.0, number=1, **values):
    """A claim that has come to something after so many seconds."""
    claim = claim_of(number, **values)
    held = HeldClaim(claim, 60.0, 10.0, 100.0)
    held.ended = 100.0 + ran
    return PendingSettlement(held, completed(claim) if decision is None else settled(claim, decision, FAILURE))


def pages(buffer):
    """All pages of buffer, which are empty then."""
    found = []
    while (page := buffer.next_page()) is not None:
        found.append(page)
        buffer.forget(*page)
    assert buffer.is_empty
    return found


def counted(buffer):
    """All that was in the buffer, by moment, queue and type."""
    return {(moment, one.queue, one.type): one for moment, tallies in pages(buffer) for one in tallies}


def test_a_new_buffer_is_empty(buffer):
    assert buffer.is_empty
    assert pages(buffer) == []


def test_each_attempt_is_counted_for_how_it_ended_and_what_it_took(buffer):
    buffer.settled(
        [finished(ran=1.0), finished(ran=1.0, number=2), finished(Again(MINUTE), 3.0), finished(Dead("x"), 5.0)]
    )
    buffer.settled([finished(Stopped("cancelled"), 0.5), finished(ran=2.0, queue="mail")])
    ran = Lengths({bucket(1.0): 2, bucket(3.0): 1, bucket(5.0): 1, bucket(0.5): 1}, 10.5)
    assert counted(buffer) == {
        (NOON, "images", "resize"): Tally("images", "resize", 2, 1, 1, 1, 0, ran=ran, attempts=Lengths({1: 4}, 4)),
        (NOON, "mail", "resize"): Tally(
            "mail", "resize", completed=1, ran=Lengths({bucket(2.0): 1}, 2.0), attempts=Lengths({1: 1}, 1)
        ),
    }


def test_what_goes_back_without_having_failed_did_not_end(buffer):
    claim = claim_of()
    buffer.settled([finished(Later(MINUTE)), finished(Alone()), finished()._replace(settlement=released(claim))])
    assert counted(buffer) == {}
    assert buffer.is_empty


def test_a_completion_that_its_handler_stored_is_counted_from_its_beginning(buffer):
    now = SYSTEM.monotonic()
    buffer.completed(HeldClaim(claim_of(), 60.0, 10.0, now - 7.0))
    (tally,) = counted(buffer).values()
    assert tally.completed == 1
    assert 7.0 <= tally.ran.total < 8.0


@pytest.mark.parametrize(
    ("decision", "column"), [(Again(MINUTE), "lost"), (Alone(), "lost"), (Dead("lease lost"), "dead_lettered")]
)
def test_a_lease_that_ran_out_is_lost_unless_its_job_is_given_up(buffer, decision, column):
    overdue = OverdueLease("01J", "resize", 4, "host:1:nonce", 3, 3, 0, 0, "images")
    buffer.swept([(overdue, settled(overdue, decision, FAILURE))])
    attempts = Lengths({3: 1}, 3) if column == "dead_lettered" else Lengths()
    assert list(counted(buffer).values()) == [Tally("images", "resize", **{column: 1}, attempts=attempts)]


def test_many_attempts_are_counted_together(buffer):
    overdue = OverdueLease("01J", "resize", 4, "host:1:nonce", 2_000_000_000, 3, 0, 0, "images")
    buffer.swept([(overdue, settled(overdue, Dead("lease lost"), FAILURE))])
    (tally,) = counted(buffer).values()
    assert tally.attempts == Lengths({MOST_ATTEMPTS: 1}, 2_000_000_000)


def due(seconds):
    """A claim that has been due for so long at noon and a half minute; for less than nothing, if it is not yet."""
    return claim_of(scheduled_at=NOON + timedelta(seconds=30 - seconds))


def test_jobs_waited_from_when_they_were_due_by_the_databases_clock(buffer):
    buffer.began([due(2.0), due(100.0)], SYSTEM.monotonic())
    (tally,) = counted(buffer).values()
    assert (tally.waited.number, tally.completed) == (2, 0)
    assert 102.0 <= tally.waited.total < 103.0


def test_a_machine_whose_clock_is_an_hour_off_counts_by_the_databases(monkeypatch):
    wrong = VirtualClock(NOON - timedelta(hours=1))
    monkeypatch.setattr(metrics_buffer, "SYSTEM", wrong)
    buffer = MetricsBuffer()
    buffer.set_clock(NOON)
    wrong.advance(5)
    buffer.began([claim_of(scheduled_at=NOON)], wrong.monotonic())
    assert counted(buffer) == {
        (NOON, "images", "resize"): Tally("images", "resize", waited=Lengths({bucket(5.0): 1}, 5.0))
    }


def test_until_the_database_was_asked_the_machines_own_clock_serves():
    buffer, now = MetricsBuffer(), SYSTEM.now()
    buffer.began([claim_of(scheduled_at=now - timedelta(seconds=3))], SYSTEM.monotonic())
    (tally,) = counted(buffer).values()
    assert 3.0 <= tally.waited.total < 4.0


def test_a_job_that_is_claimed_before_it_seems_due_has_not_waited(buffer):
    buffer.began([due(-3600.0), due(4.0)], SYSTEM.monotonic())
    (tally,) = counted(buffer).values()
    assert (tally.waited.number, tally.waited.buckets[0]) == (2, 1)
    assert 4.0 <= tally.waited.total < 5.0


@pytest.fixture
def clock(monkeypatch):
    """The clock of a worker and of its database."""
    made = VirtualClock()
    monkeypatch.setattr(metrics_buffer, "SYSTEM", made)
    monkeypatch.setattr(metrics_flush, "SYSTEM", made)
    return made


def test_what_happens_later_is_counted_for_a_later_minute(clock):
    buffer = MetricsBuffer()
    for _ in range(3):
        buffer.settled([finished()])
        clock.advance(40)
    found = [(moment, [one.completed for one in tallies]) for moment, tallies in pages(buffer)]
    assert found == [(NOON, [2]), (NOON + MINUTE, [1])]


def test_what_is_added_leaves_the_books(clock):
    buffer = MetricsBuffer()
    buffer.settled([finished()])
    clock.advance(60)
    buffer.settled([finished()])
    buffer.forget(*buffer.next_page())
    assert [moment for moment, _tallies in pages(buffer)] == [NOON + MINUTE]


def test_the_buffer_stays_small_and_lose_nothing_where_nothing_can_be_added(clock):
    buffer = MetricsBuffer()
    for _ in range(3 * metrics_buffer.MOST_MINUTES):
        buffer.settled([finished(), finished(queue="mail")])
        buffer.began([claim_of(scheduled_at=clock.now() - MINUTE)], clock.monotonic())
        clock.advance(60)
    found = counted(buffer)
    assert len({moment for moment, _queue, _type in found}) == metrics_buffer.MOST_MINUTES
    everything = list(found.values())
    assert sum(one.completed for one in everything) == 6 * metrics_buffer.MOST_MINUTES
    assert sum(one.waited.number for one in everything) == 3 * metrics_buffer.MOST_MINUTES
    assert sum(one.ran.total for one in everything) == 6 * metrics_buffer.MOST_MINUTES
    assert sum(one.waited.total for one in everything) == 60 * 3 * metrics_buffer.MOST_MINUTES


def test_a_clock_that_is_set_back_an_hour_loses_nothing(clock):
    buffer = MetricsBuffer()
    for _ in range(metrics_buffer.MOST_MINUTES + 5):
        buffer.settled([finished()])
        clock.advance(60)
    buffer.set_clock(clock.now() - timedelta(hours=2))
    buffer.settled([finished()])
    clock.advance(60)
    buffer.settled([finished()])
    assert sum(one.completed for one in counted(buffer).values()) == metrics_buffer.MOST_MINUTES + 7


def test_a_good_deal_is_counted_before_its_minute_is_over(buffer):
    for _ in range(50):
        buffer.settled([finished(ran=2.0)] * 100)
        buffer.began([due(5.0)] * 100, SYSTEM.monotonic())
    (tally,) = counted(buffer).values()
    assert (tally.completed, tally.ran.number, tally.waited.number) == (5_000, 5_000, 5_000)
    assert tally.ran.total == 10_000.0


def test_of_more_kinds_than_the_books_have_room_for_the_rest_counts_for_their_queue(buffer, monkeypatch):
    monkeypatch.setattr(metrics_buffer, "MOST_KINDS", 3)
    buffer.settled([finished(queue="mail", type=f"type-{number}") for number in range(8)])
    buffer.settled([finished(queue=f"queue-{number}") for number in range(7)])
    assert {key[1:]: one.completed for key, one in counted(buffer).items()} == {
        ("mail", "type-0"): 1,
        ("mail", "type-1"): 1,
        ("mail", "type-2"): 1,
        ("mail", ""): 5,
        ("queue-0", ""): 1,
        ("queue-1", ""): 1,
        ("", ""): 5,
    }


# From the buffer to the table


class Context:
    """What the flush needs of a supervisor."""

    def __init__(self, clock):
        self.backend = MemoryBackend(clock=clock)
        self.metrics, self.claims = MetricsBuffer(), ()
        self.database = DatabaseLink("default", lambda: 0, 60.0, lambda _error: False)


@pytest.fixture
def context(clock, databases):
    return Context(clock)


def completed_in(context):
    return [one.tally.completed for one in context.backend.metrics.stretches(60, NOON)]


def fails(error):
    def verb(*_args):
        raise error

    return verb


def test_what_was_counted_is_added_every_ten_seconds(context, clock):
    flush = MetricsFlush(context)
    flush.act()
    context.metrics.settled([finished()])
    clock.advance(9.9)
    flush.act()
    assert completed_in(context) == []
    clock.advance(0.2)
    flush.act()
    assert completed_in(context) == [1]
    assert context.metrics.is_empty


def test_what_others_have_locked_is_kept_and_tried_again_soon(context, clock, monkeypatch):
    flush = MetricsFlush(context)
    context.metrics.settled([finished()])
    with monkeypatch.context() as patch:
        patch.setattr(context.backend.metrics, "add", lambda *_args: False)
        flush.act()
    assert not context.metrics.is_empty
    assert 0.5 <= flush.due - clock.monotonic() <= 1.5
    clock.advance(2)
    context.metrics.settled([finished()])
    flush.act()
    assert completed_in(context) == [2]


@pytest.mark.parametrize("error", [OperationalError("gone"), DatabaseBusy("written to")], ids=["gone", "busy"])
def test_where_the_database_is_out_of_reach_the_books_are_kept(context, clock, monkeypatch, error):
    flush = MetricsFlush(context)
    context.metrics.settled([finished()])
    with monkeypatch.context() as patch:
        patch.setattr(context.backend.metrics, "add", fails(error))
        flush.act()
    assert context.database.out_until > 0
    assert not context.metrics.is_empty
    clock.advance(10)
    monkeypatch.setattr(context.database, "out_until", 0.0)  # which goes by the machine's clock
    flush.act()
    assert completed_in(context) == [1]


@pytest.mark.parametrize("error", [DataError("no"), NotMigrated("default")], ids=["refused", "not migrated"])
def test_a_database_that_will_not_have_figures_ends_no_worker(context, clock, monkeypatch, caplog, error):
    flush = MetricsFlush(context)
    monkeypatch.setattr(context.backend.metrics, "add", fails(error))
    for _ in range(3):
        context.metrics.settled([finished()])
        with caplog.at_level(logging.ERROR):
            flush.act()
        assert not context.database.is_lost
        assert flush.due == clock.monotonic() + 10
        clock.advance(10)
    assert [record.message for record in caplog.records] == [
        "The metrics of this worker cannot be stored; its jobs go on"
    ]


def test_after_a_while_out_of_reach_others_have_their_turns_between_two_minutes(context, clock):
    flush = MetricsFlush(context)
    for _ in range(3):
        context.metrics.settled([finished()])
        clock.advance(60)
    for added in ([1], [1, 1]):
        flush.act()
        assert completed_in(context) == added
        assert flush.due == clock.monotonic()
    flush.act()
    assert completed_in(context) == [1, 1, 1]
    assert flush.due == clock.monotonic() + 10


def test_what_comes_in_while_the_buffer_is_added_waits_for_the_next_time(context, clock):
    flush, turns = MetricsFlush(context), 0
    context.metrics.settled([finished(queue=f"queue-{number}") for number in range(metrics_buffer.KINDS_AT_ONCE + 1)])
    while flush.due <= clock.monotonic():
        flush.act()
        context.metrics.settled([finished(queue=f"queue-{turns}")])
        turns += 1
    assert turns == 2
    assert not context.metrics.is_empty


def test_of_many_kinds_some_are_added_at_a_time(context, clock):
    flush, many = MetricsFlush(context), 2 * metrics_buffer.KINDS_AT_ONCE + 1
    context.metrics.settled([finished(queue=f"queue-{number}") for number in range(many)])
    added = []
    while flush.due <= clock.monotonic():
        flush.act()
        added += completed_in(context)
    assert added == [metrics_buffer.KINDS_AT_ONCE, 2 * metrics_buffer.KINDS_AT_ONCE, many]


def test_a_worker_that_ends_adds_all_that_is_left(context, clock):
    for _ in range(6):
        context.metrics.settled([finished()])
        clock.advance(60)
    MetricsFlush(context).close()
    assert completed_in(context) == [1] * 6


def test_a_worker_that_ends_waits_a_moment_for_those_who_have_the_rows(context, monkeypatch):
    answers = iter([False, False])
    tally = context.backend.metrics.add
    monkeypatch.setattr(context.backend.metrics, "add", lambda *given: next(answers, True) and tally(*given))
    context.metrics.settled([finished()])
    MetricsFlush(context).close()
    assert completed_in(context) == [1]


@pytest.fixture
def impatient(clock, monkeypatch):
    """A nap lets the worker's clock go on."""
    monkeypatch.setattr(metrics_flush.time, "sleep", clock.advance)


def test_a_worker_that_ends_does_not_wait_for_ever(context, impatient, monkeypatch, caplog):
    monkeypatch.setattr(context.backend.metrics, "add", lambda *_given: False)
    context.metrics.settled([finished()])
    with caplog.at_level(logging.WARNING):
        MetricsFlush(context).close()
    assert [record.message for record in caplog.records] == ["The last metrics of this worker could not be stored"]


def test_a_worker_that_ends_does_not_wait_for_a_database_that_is_gone(context, clock, monkeypatch):
    tries = []

    def gone(*_given):
        tries.append(clock.monotonic())
        raise OperationalError("gone")

    monkeypatch.setattr(context.backend.metrics, "add", gone)
    context.metrics.settled([finished()])
    MetricsFlush(context).close()
    assert len(tries) == 1


def test_the_moments_of_books_are_aware_and_in_utc(buffer):
    buffer.settled([finished()])
    ((moment, _tallies),) = pages(buffer)
    assert moment == datetime(2026, 1, 16, 12, 0, tzinfo=UTC)
    assert moment.tzinfo is UTC
