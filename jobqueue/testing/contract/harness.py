"""Fixtures and functions of the contract's tests."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any, TypeVar

import pytest
from django.db import connections

from jobqueue.backends.base import Backend
from jobqueue.ids import new_id
from jobqueue.policy.leases import settle_overdue
from jobqueue.policy.settling import completed, settled
from jobqueue.records import (
    Again,
    Claim,
    ClaimRequest,
    Dead,
    Decision,
    Draft,
    DraftReceipt,
    Ending,
    Failure,
    JobRecord,
    Settlement,
    Sweep,
)
from jobqueue.testing.clock import VirtualClock

A = TypeVar("A")
B = TypeVar("B")

KNOWN = frozenset({"resize", "greet", "rare"})
LEASE = timedelta(seconds=60)

#: How long the holder of a transaction waits for the other thread, which gets through or is blocked by it.
PATIENCE = 0.3


class Contract:
    """The fixtures of all parts of the contract."""

    @pytest.fixture
    def clock(self) -> VirtualClock:
        return VirtualClock()

    @pytest.fixture
    def backend(self, make_backend: Callable[[VirtualClock], Backend], clock: VirtualClock) -> Backend:
        return make_backend(clock)


def draft(job_type: str = "resize", **values: Any) -> Draft:
    """Return a draft with the given values."""
    return Draft(**{"id": new_id(), "type": job_type, "payload": '{"image_id": 7}', **values})


def put(backend: Backend, job_type: str = "resize", **values: Any) -> str:
    """Enqueue one job and return its id."""
    return put_all(backend, draft(job_type, **values))[0]


def put_all(backend: Backend, *drafts: Draft) -> list[str]:
    """Enqueue jobs and return their ids."""
    return [receipt.id for receipt in backend.enqueue(drafts)]


def request(limit: int = 10, **values: Any) -> ClaimRequest:
    """Return a request for the types that the tests use."""
    return ClaimRequest(**{"limit": limit, "types": KNOWN, "lease": LEASE, **values})


def take(backend: Backend, limit: int = 10, owner: str = "me", **values: Any) -> list[Claim]:
    """Claim jobs, and repeat that as long as the backend asks for it."""
    claims: list[Claim] = []
    while True:
        cycle = backend.cycle(owner, (), request(limit - len(claims), **values))
        claims += cycle.claims
        if len(claims) == limit or cycle.next_due != timedelta(0):
            return claims


def take_one(backend: Backend, owner: str = "me", **values: Any) -> Claim:
    """Claim the only job."""
    (claim,) = take(backend, 1, owner, **values)
    return claim


def settle(backend: Backend, *settlements: Settlement) -> tuple[Settlement, ...]:
    """Store settlements and return the refused ones."""
    return backend.cycle("me", settlements).refused


def failing(claim: Claim, decision: Decision | None = None, ending: Ending = Ending.FAILED) -> Settlement:
    """Return the settlement of a failed attempt. By default the job runs again after ten seconds."""
    failure = Failure.of(ending, error_class="OSError", message="disk on fire", duration=timedelta(seconds=2))
    return settled(claim, decision or Again(timedelta(seconds=10)), failure)


def bury(backend: Backend, claim: Claim) -> None:
    """Make a claimed job a dead letter."""
    assert settle(backend, failing(claim, Dead("attempts used up"))) == ()


def finish(backend: Backend, claim: Claim, result: str | None = "null") -> bool:
    """Complete a job. Return whether the completion was stored."""
    return settle(backend, completed(claim, result)) == ()


def sweep(backend: Backend, clock: VirtualClock) -> Sweep:
    """Sweep once, or twice if the backend needs two sweeps, and return everything that ended."""
    first = backend.sweep(settle_overdue)
    if not first.look_again:
        return first
    clock.advance(backend.second_look)
    second = backend.sweep(settle_overdue)
    return Sweep(first.ended + second.ended, first.expired + second.expired, second.look_again)


def job(backend: Backend, job_id: str) -> JobRecord:
    """Return a job that must exist."""
    found = backend.jobs.get(job_id)
    assert found is not None
    return found


def overlapping(backend: Backend, first: Callable[[], A], second: Callable[[], B]) -> tuple[A, B]:
    """Call ``first`` in a transaction, and ``second`` on another connection before that transaction commits."""
    acted, through = threading.Event(), threading.Event()

    def holding() -> A:
        with backend.atomic():
            try:
                return first()
            finally:
                acted.set()
                through.wait(PATIENCE)

    def meeting() -> B:
        assert acted.wait(10)
        try:
            return second()
        finally:
            through.set()

    one, other = together(holding, meeting)
    return one, other


def together(*works: Callable[[], Any]) -> list[Any]:
    """Call each function in a thread with a connection of its own. Return the results, or raise an error of one."""
    results: list[Any] = [None] * len(works)
    errors: list[BaseException] = []

    def run(place: int, work: Callable[[], Any]) -> None:
        try:
            results[place] = work()
        except BaseException as error:
            errors.append(error)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=run, args=(place, work)) for place, work in enumerate(works)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive(), "a thread did not come back"
    if errors:
        raise errors[0]
    return results


def receipts(backend: Backend, *drafts: Draft) -> list[DraftReceipt]:
    """Enqueue and return the receipts."""
    return backend.enqueue(drafts)
