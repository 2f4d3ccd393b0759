"""Tests of wake-ups: a listener learns of commits, or times out; nothing is lost if nobody listens."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from math import inf
from select import select

import pytest

from jobqueue.backends.base import Backend
from jobqueue.backends.wake import Listener
from jobqueue.clock import SYSTEM
from jobqueue.testing.contract.harness import Contract, draft, finish, put_all, take, take_one, together


class WakeContract(Contract):
    """Tests of how waiting ends."""

    def test_a_rest_changes_nothing(self, backend: Backend) -> None:
        put_all(backend, draft(), draft())
        claim = take_one(backend)
        backend.rest()
        assert finish(backend, claim)
        assert len(take(backend)) == 1

    @pytest.fixture
    def listener(self, backend: Backend) -> Iterator[Listener]:
        listener = backend.listen()
        yield listener
        listener.close()

    def test_a_wake_up_ends_the_wait(self, backend: Backend, listener: Listener) -> None:
        started = SYSTEM.monotonic()
        together(backend.wake)
        assert listener.hear(20)
        assert SYSTEM.monotonic() - started < 10

    @pytest.mark.parametrize("age", [0.2, 3_600.0, inf])
    def test_a_wake_up_for_jobs_of_any_age_ends_the_wait(
        self, backend: Backend, listener: Listener, age: float
    ) -> None:
        together(lambda: backend.wake(age))
        assert listener.hear(20)

    def test_a_wake_up_waits_for_the_commit(self, backend: Backend, listener: Listener) -> None:
        listener.hear(0)
        with suppress(ZeroDivisionError), backend.atomic():
            backend.wake_on_commit()
            raise ZeroDivisionError
        assert not listener.hear(0.05)
        with backend.atomic():
            backend.wake_on_commit()
            put_all(backend, draft())
        assert listener.hear(20)

    def test_a_wake_up_makes_the_descriptor_readable(self, backend: Backend, listener: Listener) -> None:
        together(backend.wake)
        assert select([listener.fileno()], [], [], 10)[0]

    def test_nothing_ends_the_wait_but_its_time(self, listener: Listener) -> None:
        listener.hear(0)
        assert not listener.hear(0.05)

    def test_each_of_several_listeners_is_woken(self, backend: Backend, listener: Listener) -> None:
        other = backend.listen()
        try:
            together(backend.wake)
            assert listener.hear(20)
            assert other.hear(20)
        finally:
            other.close()

    def test_nobody_listening_is_no_trouble(self, backend: Backend) -> None:
        backend.listen().close()
        backend.wake()

    def test_a_listener_can_test_itself(self, listener: Listener) -> None:
        assert listener.self_test()
