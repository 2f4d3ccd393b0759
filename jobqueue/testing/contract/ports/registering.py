"""Tests of the registry of workers: they report that they are up, and are removed when they end or fall silent."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from jobqueue.backends.base import Backend
from jobqueue.records import WorkerRecord, WorkerRequest, WorkerState
from jobqueue.testing.clock import NOON, VirtualClock
from jobqueue.testing.contract.harness import Contract


def worker(owner: str = "host:1:nonce", **values: Any) -> WorkerRecord:
    """Return a worker with the given values."""
    known = {"name": owner, "host": "host", "pid": 1, "version": "0.1", "processes": 2, "slots": 20}
    return WorkerRecord(**{"owner": owner, "started_at": NOON, "seen_at": NOON, **known, **values})


def owners(backend: Backend) -> list[str]:
    """Return the registered owners in order."""
    return [one.owner for one in backend.workers.all()]


class RegisterContract(Contract):
    """Tests of the registry of workers."""

    def test_nobody_is_up_at_first(self, backend: Backend) -> None:
        assert backend.workers.all() == []

    @pytest.mark.parametrize("queues", [None, (), ("images", "mail")])
    @pytest.mark.parametrize("types", [(), ("greet", "resize")])
    def test_a_worker_that_enlists_is_listed_as_it_said(
        self, backend: Backend, queues: tuple[str, ...] | None, types: tuple[str, ...]
    ) -> None:
        said = worker(name="mail ümlaut", pid=4_000_000, busy=7, queues=queues, types=types, lock="boot:fe00:2a")
        backend.workers.enlist(said)
        assert backend.workers.all() == [said]

    def test_the_moment_is_the_backends_own(self, backend: Backend, clock: VirtualClock) -> None:
        clock.advance(30)
        backend.workers.enlist(worker(seen_at=NOON - timedelta(days=9)))
        (found,) = backend.workers.all()
        assert (found.seen_at, found.started_at) == (NOON + timedelta(seconds=30), NOON)

    def test_enlisting_again_brings_news_and_no_second_row(self, backend: Backend, clock: VirtualClock) -> None:
        first = worker(busy=3)
        backend.workers.enlist(first)
        clock.advance(10)
        backend.workers.enlist(replace(first, busy=11, state=WorkerState.STOPPING))
        seen_at = NOON + timedelta(seconds=10)
        assert backend.workers.all() == [replace(first, busy=11, state=WorkerState.STOPPING, seen_at=seen_at)]

    def test_a_worker_is_told_what_was_asked_of_it_when_it_enlists(self, backend: Backend) -> None:
        mine = worker("mine")
        assert backend.workers.enlist(mine) is None
        for request in (WorkerRequest.QUIET, WorkerRequest.STOP, None):
            assert backend.workers.ask("mine", request)
            assert [one.asked for one in backend.workers.all()] == [request]
            assert backend.workers.enlist(replace(mine, asked=WorkerRequest.STOP)) is request
            assert [one.asked for one in backend.workers.all()] == [request]

    def test_nobody_can_be_asked_who_is_not_there(self, backend: Backend) -> None:
        backend.workers.enlist(worker("mine"))
        assert not backend.workers.ask("yours", WorkerRequest.STOP)
        backend.workers.dismiss("mine")
        assert not backend.workers.ask("mine", WorkerRequest.STOP)
        assert backend.workers.enlist(worker("mine", asked=WorkerRequest.STOP)) is None

    def test_a_quiet_worker_serves_and_takes_nothing(self, backend: Backend) -> None:
        backend.workers.enlist(worker("mine", types=("resize",), state=WorkerState.QUIET))
        (found,) = backend.workers.all()
        assert (found.state, found.serves("default", "resize"), found.takes("default", "resize")) == (
            WorkerState.QUIET,
            True,
            False,
        )

    def test_workers_come_by_name_and_then_by_owner(self, backend: Backend) -> None:
        for owner, name in (("d", "b"), ("b", "a"), ("c", "a"), ("a", "c")):
            backend.workers.enlist(worker(owner, name=name))
        assert owners(backend) == ["b", "c", "d", "a"]

    def test_a_worker_that_ended_is_forgotten(self, backend: Backend) -> None:
        backend.workers.enlist(worker("mine"))
        backend.workers.enlist(worker("yours"))
        backend.workers.dismiss("mine")
        assert owners(backend) == ["yours"]

    def test_dismissing_a_stranger_is_no_trouble(self, backend: Backend) -> None:
        backend.workers.enlist(worker("mine"))
        backend.workers.dismiss("nobody")
        assert owners(backend) == ["mine"]

    def test_a_dismissed_worker_may_come_back(self, backend: Backend) -> None:
        backend.workers.enlist(worker("mine"))
        backend.workers.dismiss("mine")
        backend.workers.enlist(worker("mine", busy=1))
        assert [one.busy for one in backend.workers.all()] == [1]

    def test_who_is_silent_for_a_day_is_forgotten_when_another_enlists(
        self, backend: Backend, clock: VirtualClock
    ) -> None:
        backend.workers.enlist(worker("dead"))
        clock.advance(timedelta(hours=1))
        backend.workers.enlist(worker("quiet"))
        clock.advance(timedelta(hours=22, minutes=59))
        backend.workers.enlist(worker("alive"))
        assert owners(backend) == ["alive", "dead", "quiet"]
        clock.advance(timedelta(minutes=2))
        assert owners(backend) == ["alive", "dead", "quiet"]
        backend.workers.enlist(worker("alive"))
        assert owners(backend) == ["alive", "quiet"]

    def test_a_worker_is_alive_as_long_as_it_was_heard_of_lately(self, backend: Backend, clock: VirtualClock) -> None:
        backend.workers.enlist(worker("dead"))
        clock.advance(31)
        backend.workers.enlist(worker("alive"))
        clock.advance(29)
        assert {one.owner: one.is_alive(backend.now()) for one in backend.workers.all()} == {
            "alive": True,
            "dead": False,
        }
