"""Tests of slots that are free again: a worker with idle slots beside jobs under a limit is woken when one ends."""

from __future__ import annotations

from dataclasses import replace

import pytest

from jobqueue.policy.limits.freed import leaves_room
from jobqueue.policy.limits.limits import LimitBook
from jobqueue.records import Cycle, Limit, LimitKind, QueueOptions, Scope
from jobqueue.testing.contract.harness import draft, put_all, request, take
from jobqueue.testing.contract.limiting import at_once, rate
from tests.conftest import ON_SQLITE
from tests.worker.conftest import jobs, ledger, start_worker  # noqa: F401 - fixtures
from tests.worker.harness import until, until_at_rest

#: Longer than a test waits: whoever starts sooner was woken.
NEVER_POLLS = ("--poll-interval", "300", "--processes", "1", "-c", "1")


@pytest.fixture
def claims(queue):
    """Claims of two jobs of one queue, and of one of another."""
    put_all(queue, draft(), draft(), draft(queue="mail"))
    return take(queue, 3)


@ON_SQLITE
def test_a_cycle_that_could_not_look_leaves_room(claims):
    first, second, mail = claims
    book, wide = LimitBook([at_once(1)]), request(limit=3)
    assert leaves_room(book, [first], Cycle(), None)
    assert not leaves_room(book, [first], Cycle(), wide)  # it found no more jobs
    assert not leaves_room(LimitBook(), [first], Cycle(), None)
    assert not leaves_room(LimitBook([rate(1)]), [first], Cycle(), None)
    full = request(limit=1)
    assert not leaves_room(book, [first], Cycle(claims=(second,)), full)
    assert leaves_room(book, [first, second], Cycle(claims=(mail,)), full)
    narrow = replace(wide, queues=frozenset({"default"}))
    assert leaves_room(book, [first], Cycle(), narrow)
    of_queue = LimitBook([Limit(Scope.QUEUE, "default", LimitKind.CONCURRENCY, 1)])
    assert not leaves_room(of_queue, [first], Cycle(), narrow)
    assert not leaves_room(of_queue, [mail], Cycle(), None)


@ON_SQLITE
def test_a_full_cycle_leaves_room_in_a_lane(claims):
    first, _second, mail = claims
    book = LimitBook(entries=("default",), queue_options={"default": QueueOptions(ordered=True)})
    assert leaves_room(book, [first], Cycle(), None)
    assert leaves_room(book, [first], Cycle(claims=(mail,)), request(limit=1))
    assert not leaves_room(book, [first], Cycle(claims=(mail,)), request(limit=2))
    assert not leaves_room(book, [mail], Cycle(), None)


def test_the_end_of_a_job_wakes_a_worker_of_another_queue(queue, ledger, start_worker):  # noqa: F811
    queue.limits.set(Limit(Scope.TYPE, "hold", LimitKind.CONCURRENCY, 1))
    _first, second = (start_worker(*NEVER_POLLS, "--queue", name) for name in ("first", "second"))
    put_all(queue, draft("hold", queue="first", payload='{"gate": "a"}'))
    queue.wake()
    until(lambda: len(ledger.entries("start")) == 1, what="the first job")
    put_all(queue, draft("hold", queue="second", payload='{"gate": "b"}'))
    queue.wake()
    until_at_rest(second.pid)  # it has looked, and found the limit used up
    ledger.open_gate("a")
    until(lambda: len(ledger.entries("start")) == 2, 20, "the job that waited for the limit")
    ended, started = ledger.entries("end")[0]["at"], ledger.entries("start")[1]["at"]
    assert 0 <= started - ended < 5
    ledger.open_gate("b")
    until(lambda: len(ledger.entries("end")) == 2, what="its end")
