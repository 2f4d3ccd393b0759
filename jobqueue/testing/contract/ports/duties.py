"""Tests of the roster of duties: one worker does a duty at a time, and another takes over from one that died."""

from __future__ import annotations

from datetime import timedelta

import pytest

from jobqueue.backends.base import Backend
from jobqueue.records.duty import PRECEDENCE, TURN, DutyRecord
from jobqueue.testing.clock import NOON, VirtualClock
from jobqueue.testing.contract.harness import Contract, together

EVERY = timedelta(seconds=60)
TOOK = timedelta(milliseconds=250)
MOMENT = timedelta(milliseconds=1)


def begins(backend: Backend, owner: str, every: timedelta = EVERY) -> bool:
    """Return whether a worker gets the turn."""
    return backend.duties.begin("sample", owner, every) is None


def ends(backend: Backend, owner: str, rest: timedelta = EVERY, failure: str = "") -> bool:
    """End a turn."""
    return backend.duties.end("sample", owner, rest, TOOK, failure)


def only(backend: Backend) -> DutyRecord:
    """Return the only duty."""
    (found,) = backend.duties.all()
    return found


class DutyContract(Contract):
    """Tests of the roster of duties."""

    def test_a_new_duty_is_due_at_once_and_for_one_worker(self, backend: Backend) -> None:
        assert backend.duties.all() == []
        assert begins(backend, "me")
        assert backend.duties.begin("sample", "you", EVERY) == TURN
        assert backend.duties.begin("other", "you", EVERY) is None

    def test_a_turn_that_ended_is_told(self, backend: Backend, clock: VirtualClock) -> None:
        begins(backend, "me")
        clock.advance(2)
        assert ends(backend, "me")
        now = NOON + timedelta(seconds=2)
        assert only(backend) == DutyRecord(
            name="sample",
            owner="me",
            due_at=now + EVERY,
            held_until=now + EVERY + PRECEDENCE,
            ran_at=now,
            seconds=0.25,
        )

    def test_the_same_worker_goes_on_when_the_duty_is_due(self, backend: Backend, clock: VirtualClock) -> None:
        begins(backend, "me")
        ends(backend, "me", timedelta(seconds=5))
        assert backend.duties.begin("sample", "me", EVERY) == timedelta(seconds=5)
        assert backend.duties.begin("sample", "you", EVERY) == timedelta(seconds=5) + PRECEDENCE
        clock.advance(5)
        assert not begins(backend, "you")
        assert begins(backend, "me")

    @pytest.mark.parametrize("in_turn", [True, False], ids=["in its turn", "between turns"])
    def test_another_worker_takes_over_within_ten_seconds_of_the_due_moment(
        self, backend: Backend, clock: VirtualClock, in_turn: bool
    ) -> None:
        begins(backend, "dead")
        if not in_turn:
            ends(backend, "dead", timedelta(0))
        wait = backend.duties.begin("sample", "heir", EVERY)
        assert wait is not None
        assert wait <= timedelta(seconds=10)
        clock.advance(wait - MOMENT)
        assert not begins(backend, "heir")
        clock.advance(MOMENT)
        assert begins(backend, "heir")

    def test_a_worker_that_was_replaced_ends_nothing(self, backend: Backend, clock: VirtualClock) -> None:
        begins(backend, "frozen")
        clock.advance(TURN)
        assert begins(backend, "heir")
        before = only(backend)
        assert not ends(backend, "frozen")
        assert only(backend) == before
        assert ends(backend, "heir")

    def test_nobody_ends_a_duty_that_nobody_began(self, backend: Backend) -> None:
        assert not ends(backend, "me")
        assert backend.duties.all() == []

    def test_a_failure_is_kept_with_its_beginning_until_a_turn_succeeds(
        self, backend: Backend, clock: VirtualClock
    ) -> None:
        for failure in ("one\0\ud800", "two"):
            begins(backend, "me")
            ends(backend, "me", timedelta(0), failure)
            clock.advance(1)
        assert (only(backend).failure, only(backend).failing_since) == ("two", NOON)
        begins(backend, "me")
        ends(backend, "me")
        assert (only(backend).failure, only(backend).failing_since) == ("", None)

    def test_moments_beyond_the_interval_do_not_count(self, backend: Backend, clock: VirtualClock) -> None:
        begins(backend, "me")
        ends(backend, "me", timedelta(days=9))  # as after a clock that was set back
        assert begins(backend, "you")

    def test_of_workers_that_begin_at_once_one_gets_the_turn(self, backend: Backend) -> None:
        begun = together(*(lambda owner=owner: begins(backend, owner) for owner in ("a", "b", "c", "d")))
        assert begun.count(True) == 1
