"""What a worker counts, minute by minute, and how it gets into the figures."""

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
from jobqueue.records import Again, Alone, Dead, Ending, Expired, Failure, Later, Lengths, Stopped, Tally
from jobqueue.testing.clock import NOON, VirtualClock
from jobqueue.worker import bookkeeping as bookkeeping_module
from jobqueue.worker import books as books_module
from jobqueue.worker.bookkeeping import Bookkeeping
from jobqueue.worker.books import Books
from jobqueue.worker.holdings import Finished, Held
from jobqueue.worker.place import Reach
from tests.worker.test_units import claim_of

FAILURE = Failure.of(Ending.FAILED)
MINUTE = timedelta(minutes=1)


@pytest.fixture
def books():
    """Books that go by a clock on which it is noon."""
    made = Books()
    made.set_clock(NOON + timedelta(seconds=30))
    return made


def finished(decision=None, ran=1.0, number=1, **values):
    """A claim that has come to something after so many seconds."""
    claim = claim_of(number, **values)
    held = Held(claim, 60.0, 10.0, 100.0)
    held.ended = 100.0 + ran
    return Finished(held, completed(claim) if decision is None else settled(claim, decision, FAILURE))


def pages(books):
    """All pages of books, which are empty then."""
    found = []
    while (page := books.next_page()) is not None:
        found.append(page)
        books.forget(*page)
    assert books.is_empty
    return found


def counted(books):
    """All that was in the books, by moment, queue and type."""
    return {(moment, one.queue, one.type): one for moment, tallies in pages(books) for one in tallies}


def test_new_books_are_empty(books):
    assert books.is_empty
    assert pages(books) == []


def test_each_attempt_is_counted_for_how_it_ended_and_what_it_took(books):
    books.settled(
        [finished(ran=1.0), finished(ran=1.0, number=2), finished(Again(MINUTE), 3.0), finished(Dead("x"), 5.0)]
    )
    books.settled([finished(Stopped("cancelled"), 0.5), finished(ran=2.0, queue="mail")])
    ran = Lengths({bucket(1.0): 2, bucket(3.0): 1, bucket(5.0): 1, bucket(0.5): 1}, 10.5)
    assert counted(books) == {
        (NOON, "images", "resize"): Tally("images", "resize", 2, 1, 1, 1, 0, ran=ran),
        (NOON, "mail", "resize"): Tally("mail", "resize", completed=1, ran=Lengths({bucket(2.0): 1}, 2.0)),
    }


def test_what_goes_back_without_having_failed_did_not_end(books):
    claim = claim_of()
    books.settled([finished(Later(MINUTE)), finished(Alone()), finished()._replace(settlement=released(claim))])
    assert counted(books) == {}
    assert books.is_empty


def test_a_completion_that_its_handler_stored_is_counted_from_its_beginning(books):
    now = SYSTEM.monotonic()
    books.completed(Held(claim_of(), 60.0, 10.0, now - 7.0))
    (tally,) = counted(books).values()
    assert tally.completed == 1
    assert 7.0 <= tally.ran.total < 8.0


@pytest.mark.parametrize(
    ("decision", "column"), [(Again(MINUTE), "lost"), (Alone(), "lost"), (Dead("lease lost"), "dead_lettered")]
)
def test_a_lease_that_ran_out_is_lost_unless_its_job_is_given_up(books, decision, column):
    expired = Expired("01J", "resize", 4, "host:1:nonce", 3, 3, 0, 0, "images")
    books.swept([(expired, settled(expired, decision, FAILURE))])
    assert list(counted(books).values()) == [Tally("images", "resize", **{column: 1})]


def due(seconds):
    """A claim that has been due for so long at noon and a half minute; for less than nothing, if it is not yet."""
    return claim_of(scheduled_at=NOON + timedelta(seconds=30 - seconds))


def test_jobs_waited_from_when_they_were_due_by_the_databases_clock(books):
    books.began([due(2.0), due(100.0)], SYSTEM.monotonic())
    (tally,) = counted(books).values()
    assert (tally.waited.number, tally.completed) == (2, 0)
    assert 102.0 <= tally.waited.total < 103.0


def test_a_machine_whose_clock_is_an_hour_off_counts_by_the_databases(monkeypatch):
    wrong = VirtualClock(NOON - timedelta(hours=1))
    monkeypatch.setattr(books_module, "SYSTEM", wrong)
    books = Books()
    books.set_clock(NOON)
    wrong.advance(5)
    books.began([claim_of(scheduled_at=NOON)], wrong.monotonic())
    assert counted(books) == {
        (NOON, "images", "resize"): Tally("images", "resize", waited=Lengths({bucket(5.0): 1}, 5.0))
    }


def test_until_the_database_was_asked_the_machines_own_clock_serves():
    books, now = Books(), SYSTEM.now()
    books.began([claim_of(scheduled_at=now - timedelta(seconds=3))], SYSTEM.monotonic())
    (tally,) = counted(books).values()
    assert 3.0 <= tally.waited.total < 4.0


def test_a_job_that_is_claimed_before_it_seems_due_has_not_waited(books):
    books.began([due(-3600.0), due(4.0)], SYSTEM.monotonic())
    (tally,) = counted(books).values()
    assert (tally.waited.number, tally.waited.buckets[0]) == (2, 1)
    assert 4.0 <= tally.waited.total < 5.0


@pytest.fixture
def clock(monkeypatch):
    """The clock of a worker and of its database."""
    made = VirtualClock()
    monkeypatch.setattr(books_module, "SYSTEM", made)
    monkeypatch.setattr(bookkeeping_module, "SYSTEM", made)
    return made


def test_what_happens_later_is_counted_for_a_later_minute(clock):
    books = Books()
    for _ in range(3):
        books.settled([finished()])
        clock.advance(40)
    found = [(moment, [one.completed for one in tallies]) for moment, tallies in pages(books)]
    assert found == [(NOON, [2]), (NOON + MINUTE, [1])]


def test_what_is_added_leaves_the_books(clock):
    books = Books()
    books.settled([finished()])
    clock.advance(60)
    books.settled([finished()])
    books.forget(*books.next_page())
    assert [moment for moment, _tallies in pages(books)] == [NOON + MINUTE]


def test_books_stay_small_and_lose_nothing_where_nothing_can_be_added(clock):
    books = Books()
    for _ in range(3 * books_module.MOST_MINUTES):
        books.settled([finished(), finished(queue="mail")])
        books.began([claim_of(scheduled_at=clock.now() - MINUTE)], clock.monotonic())
        clock.advance(60)
    found = counted(books)
    assert len({moment for moment, _queue, _type in found}) == books_module.MOST_MINUTES
    everything = list(found.values())
    assert sum(one.completed for one in everything) == 6 * books_module.MOST_MINUTES
    assert sum(one.waited.number for one in everything) == 3 * books_module.MOST_MINUTES
    assert sum(one.ran.total for one in everything) == 6 * books_module.MOST_MINUTES
    assert sum(one.waited.total for one in everything) == 60 * 3 * books_module.MOST_MINUTES


def test_a_clock_that_is_set_back_an_hour_loses_nothing(clock):
    books = Books()
    for _ in range(books_module.MOST_MINUTES + 5):
        books.settled([finished()])
        clock.advance(60)
    books.set_clock(clock.now() - timedelta(hours=2))
    books.settled([finished()])
    clock.advance(60)
    books.settled([finished()])
    assert sum(one.completed for one in counted(books).values()) == books_module.MOST_MINUTES + 7


def test_a_good_deal_is_counted_before_its_minute_is_over(books):
    for _ in range(50):
        books.settled([finished(ran=2.0)] * 100)
        books.began([due(5.0)] * 100, SYSTEM.monotonic())
    (tally,) = counted(books).values()
    assert (tally.completed, tally.ran.number, tally.waited.number) == (5_000, 5_000, 5_000)
    assert tally.ran.total == 10_000.0


def test_of_more_kinds_than_the_books_have_room_for_the_rest_counts_for_their_queue(books, monkeypatch):
    monkeypatch.setattr(books_module, "MOST_KINDS", 3)
    books.settled([finished(queue="mail", type=f"type-{number}") for number in range(8)])
    books.settled([finished(queue=f"queue-{number}") for number in range(7)])
    assert {key[1:]: one.completed for key, one in counted(books).items()} == {
        ("mail", "type-0"): 1,
        ("mail", "type-1"): 1,
        ("mail", "type-2"): 1,
        ("mail", ""): 5,
        ("queue-0", ""): 1,
        ("queue-1", ""): 1,
        ("", ""): 5,
    }


# From the books to the figures


class Desk:
    """What bookkeeping needs of a supervisor."""

    def __init__(self, clock):
        self.backend = MemoryBackend(clock=clock)
        self.books = Books()
        self.reach = Reach("default", lambda: 0, 60.0, lambda _error: False)


@pytest.fixture
def desk(clock, databases):
    return Desk(clock)


def completed_in(desk):
    return [one.tally.completed for one in desk.backend.tallied(60, NOON)]


def fails(error):
    def verb(*_args):
        raise error

    return verb


def test_what_was_counted_is_added_every_ten_seconds(desk, clock):
    keeping = Bookkeeping(desk)
    keeping.act()
    desk.books.settled([finished()])
    clock.advance(9.9)
    keeping.act()
    assert completed_in(desk) == [0]  # the row of the depth that was met
    clock.advance(0.2)
    keeping.act()
    assert completed_in(desk) == [1]
    assert desk.books.is_empty


def test_the_depth_is_looked_at_once_a_minute(desk, clock, monkeypatch):
    looks = []
    monkeypatch.setattr(desk.backend, "sample", lambda now: looks.append(now) or True)
    keeping = Bookkeeping(desk)
    for _ in range(13):
        keeping.act()
        clock.advance(10)
    assert looks == [NOON, NOON + MINUTE, NOON + 2 * MINUTE]


def test_a_look_at_the_depth_that_failed_is_made_up_for(desk, clock, monkeypatch):
    looks = []
    monkeypatch.setattr(desk.backend, "sample", lambda now: bool(looks.append(now)))
    keeping = Bookkeeping(desk)
    keeping.act()
    clock.advance(10)
    keeping.act()
    assert len(looks) == 2


def test_what_others_have_locked_is_kept_and_tried_again_soon(desk, clock, monkeypatch):
    keeping = Bookkeeping(desk)
    desk.books.settled([finished()])
    with monkeypatch.context() as patch:
        patch.setattr(desk.backend, "tally", lambda *_args: False)
        keeping.act()
    assert not desk.books.is_empty
    assert 0.5 <= keeping.due - clock.monotonic() <= 1.5
    clock.advance(2)
    desk.books.settled([finished()])
    keeping.act()
    assert completed_in(desk) == [2]


@pytest.mark.parametrize("error", [OperationalError("gone"), DatabaseBusy("written to")], ids=["gone", "busy"])
def test_where_the_database_is_out_of_reach_the_books_are_kept(desk, clock, monkeypatch, error):
    keeping = Bookkeeping(desk)
    desk.books.settled([finished()])
    with monkeypatch.context() as patch:
        patch.setattr(desk.backend, "tally", fails(error))
        keeping.act()
    assert desk.reach.out_until > 0
    assert not desk.books.is_empty
    clock.advance(10)
    monkeypatch.setattr(desk.reach, "out_until", 0.0)  # which goes by the machine's clock
    keeping.act()
    assert completed_in(desk) == [1]


@pytest.mark.parametrize("error", [DataError("no"), NotMigrated("default")], ids=["refused", "not migrated"])
def test_a_database_that_will_not_have_figures_ends_no_worker(desk, clock, monkeypatch, caplog, error):
    keeping = Bookkeeping(desk)
    for verb in ("tally", "sample"):
        monkeypatch.setattr(desk.backend, verb, fails(error))
    for _ in range(3):
        desk.books.settled([finished()])
        with caplog.at_level(logging.ERROR):
            keeping.act()
        assert not desk.reach.is_lost
        assert keeping.due == clock.monotonic() + 10
        clock.advance(10)
    assert [record.message for record in caplog.records] == [
        "The figures of this worker cannot be stored, its jobs go on"
    ]


def test_after_a_while_out_of_reach_others_have_their_turns_between_two_minutes(desk, clock):
    keeping = Bookkeeping(desk)
    for _ in range(3):
        desk.books.settled([finished()])
        clock.advance(60)
    for added in ([1], [1, 1]):
        keeping.act()
        assert completed_in(desk) == added
        assert keeping.due == clock.monotonic()
    keeping.act()
    assert completed_in(desk) == [1, 1, 1, 0]  # the last of them is the depth that was met
    assert keeping.due == clock.monotonic() + 10


def test_what_comes_in_while_the_books_are_added_waits_for_the_next_time(desk, clock):
    keeping, turns = Bookkeeping(desk), 0
    desk.books.settled([finished(queue=f"queue-{number}") for number in range(books_module.KINDS_AT_ONCE + 1)])
    while keeping.due <= clock.monotonic():
        keeping.act()
        desk.books.settled([finished(queue=f"queue-{turns}")])
        turns += 1
    assert turns == 2
    assert not desk.books.is_empty


def test_of_many_kinds_some_are_added_at_a_time(desk, clock):
    keeping, many = Bookkeeping(desk), 2 * books_module.KINDS_AT_ONCE + 1
    desk.books.settled([finished(queue=f"queue-{number}") for number in range(many)])
    added = []
    while keeping.due <= clock.monotonic():
        keeping.act()
        added += completed_in(desk)
    assert added == [books_module.KINDS_AT_ONCE, 2 * books_module.KINDS_AT_ONCE, many]


def test_a_worker_that_ends_adds_all_that_is_left(desk, clock):
    for _ in range(6):
        desk.books.settled([finished()])
        clock.advance(60)
    Bookkeeping(desk).close()
    assert completed_in(desk) == [1] * 6


def test_a_worker_that_ends_waits_a_moment_for_those_who_have_the_rows(desk, monkeypatch):
    answers = iter([False, False])
    tally = desk.backend.tally
    monkeypatch.setattr(desk.backend, "tally", lambda *given: next(answers, True) and tally(*given))
    desk.books.settled([finished()])
    Bookkeeping(desk).close()
    assert completed_in(desk) == [1]


@pytest.fixture
def impatient(clock, monkeypatch):
    """A nap lets the worker's clock go on."""
    monkeypatch.setattr(bookkeeping_module.time, "sleep", clock.advance)


def test_a_worker_that_ends_does_not_wait_for_ever(desk, impatient, monkeypatch, caplog):
    monkeypatch.setattr(desk.backend, "tally", lambda *_given: False)
    desk.books.settled([finished()])
    with caplog.at_level(logging.WARNING):
        Bookkeeping(desk).close()
    assert [record.message for record in caplog.records] == ["What this worker did last is missing from the figures"]


def test_a_worker_that_ends_does_not_wait_for_a_database_that_is_gone(desk, clock, monkeypatch):
    tries = []

    def gone(*_given):
        tries.append(clock.monotonic())
        raise OperationalError("gone")

    monkeypatch.setattr(desk.backend, "tally", gone)
    desk.books.settled([finished()])
    Bookkeeping(desk).close()
    assert len(tries) == 1


def test_the_moments_of_books_are_aware_and_in_utc(books):
    books.settled([finished()])
    ((moment, _tallies),) = pages(books)
    assert moment == datetime(2026, 1, 16, 12, 0, tzinfo=UTC)
    assert moment.tzinfo is UTC
