"""Wake and rest: a listener hears of commits, at its time-out at the latest; nothing is lost where nobody waits."""

from __future__ import annotations

from collections.abc import Iterator
from select import select

import pytest

from jobqueue.backends.base import Backend
from jobqueue.backends.wake import PAUSE, Listener
from jobqueue.clock import SYSTEM
from jobqueue.testing.contract.harness import Contract, draft, finish, put_all, take, take_one, together


class WakeContract(Contract):
    """How waiting ends."""

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
        assert listener.wait(20)
        assert SYSTEM.monotonic() - started < 10

    def test_a_wake_up_makes_the_descriptor_readable(self, backend: Backend, listener: Listener) -> None:
        together(backend.wake)
        assert select([listener.fileno()], [], [], 10)[0]

    def test_nothing_ends_the_wait_but_its_time(self, listener: Listener) -> None:
        listener.wait(0)
        assert not listener.wait(0.05)

    def test_the_waiter_looks_twice_more_after_a_wake_up(self, backend: Backend, listener: Listener) -> None:
        """At 5 and at 10 milliseconds: one look is enough for both where the waiter itself comes later than that."""
        for _ in range(100):
            together(backend.wake)
            assert select([listener.fileno()], [], [], 20)[0]
            began = SYSTEM.monotonic()
            assert listener.wait(20)
            assert listener.wait(20)
            if SYSTEM.monotonic() < began + 2 * PAUSE:  # the second look cannot have been due
                assert listener.wait(20)
                assert SYSTEM.monotonic() < began + 10
                return
        pytest.fail("This machine is too busy to look twice within 10 milliseconds, in 100 tries.")

    def test_each_of_several_listeners_is_woken(self, backend: Backend, listener: Listener) -> None:
        other = backend.listen()
        try:
            together(backend.wake)
            assert listener.wait(20)
            assert other.wait(20)
        finally:
            other.close()

    def test_nobody_listening_is_no_trouble(self, backend: Backend) -> None:
        backend.listen().close()
        backend.wake()

    def test_a_listener_can_test_itself(self, listener: Listener) -> None:
        assert listener.self_test()
