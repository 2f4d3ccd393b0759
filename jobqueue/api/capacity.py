"""The capacity of queues: whether drafts fit, and what happens to those that don't.

The depth of a queue is what workers counted last, plus what this process has enqueued since. Therefore, it misses what
other processes enqueue for up to ``OLDEST`` seconds, and what open transactions of others hold.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter, deque
from collections.abc import Collection, Sequence
from contextvars import ContextVar
from random import SystemRandom
from time import sleep

from django.core.signals import setting_changed
from django.db import connections

from jobqueue import queues
from jobqueue.backends.base import Backend
from jobqueue.clock import SYSTEM
from jobqueue.errors import QueueFull
from jobqueue.observe import announce
from jobqueue.records import Draft, Filter, QueueOptions, WhenFull
from jobqueue.records.gauge import SAMPLE_EVERY, STALE_AFTER
from jobqueue.states import JobStatus

logger = logging.getLogger("jobqueue")

#: How often a process reads a gauge.
READ_EVERY = 0.5
#: How old a depth may be while a worker is up: the time between two samples, and between two looks at them.
OLDEST = SAMPLE_EVERY.total_seconds() + READ_EVERY
#: Without a worker, a process counts for itself, for at most this share of its time.
_COUNTING_SHARE = 0.05
#: Jobs with a larger number are less urgent than usual, and may be shed.
LEAST_URGENT_KEPT = 5
#: The pause of a producer that waits, drawn at random so that producers don't all come back together.
_PAUSE = (0.1, 0.3)
#: How often a process stores how many jobs it has shed.
_COUNT_SHED_EVERY = 1.0
#: How often it logs that it sheds jobs.
_LOG_SHED_EVERY = 60.0

_dice = SystemRandom()
_lock = threading.Lock()

#: Set in async code, which waits in its event loop: a queue that has no room raises ``NoRoom`` there.
is_async: ContextVar[bool] = ContextVar("jobqueue_is_async", default=False)


class NoRoom(Exception):
    """A producer must wait for ``pause`` seconds, and for ``most`` seconds in total before it gets ``full``."""

    def __init__(self, full: QueueFull, most: float) -> None:
        self.full, self.most, self.pause = full, most, _dice.uniform(*_PAUSE)


class _Depth:
    """The depth of one queue as this process knows it."""

    def __init__(self) -> None:
        self._counted = 0
        self._read_at = float("-inf")
        self._own: deque[tuple[float, int]] = deque()
        #: What the open transaction of this thread has enqueued, which no sample sees.
        self._open = threading.local()
        self.shed = 0
        self.shed_told_at = self.logged_at = float("-inf")

    def look(self, backend: Backend, queue: str, capacity: int) -> int:
        """Return about how many jobs wait, counted up to the capacity."""
        now = SYSTEM.monotonic()
        if now - self._read_at >= READ_EVERY:
            gauge = backend.gauges.read(queue)
            if gauge.age is not None and gauge.age < STALE_AFTER:
                self._take(gauge.queued, now - gauge.age.total_seconds(), now)
            else:
                self._count(backend, queue, capacity, now)
        if not backend.in_atomic():
            self._open.number = 0  # committed, and so counted below, or rolled back
        with _lock:
            own = sum(number for _at, number in self._own)
            return self._counted + own + getattr(self._open, "number", 0)

    def _count(self, backend: Backend, queue: str, capacity: int, began: float) -> None:
        """Count up to the capacity. Without a worker, the queue fills, and nobody else counts."""
        wanted = Filter(statuses=frozenset({JobStatus.QUEUED}), queues=frozenset({queue}))
        counted, now = backend.jobs.count(wanted, capacity), SYSTEM.monotonic()
        self._open.number = 0  # counted: this is the same transaction
        self._take(counted, now, max(now, now + (now - began) / _COUNTING_SHARE - READ_EVERY))

    def _take(self, counted: int, as_of: float, read_at: float) -> None:
        with _lock:
            self._counted, self._read_at = counted, read_at
            while self._own and self._own[0][0] < as_of:
                self._own.popleft()

    def add(self, backend: Backend, number: int) -> None:
        """Add jobs that this process has enqueued: at once, and for other threads after the commit."""
        if backend.in_atomic():
            self._open.number = getattr(self._open, "number", 0) + number
        backend.on_commit(lambda: self._add(number))

    def _add(self, number: int) -> None:
        now = SYSTEM.monotonic()
        with _lock:
            if self._own and now - self._own[-1][0] < READ_EVERY / 10:
                now, before = self._own.pop()
                number += before
            self._own.append((now, number))


_depths: dict[str, _Depth] = {}


def is_bounded(drafts: Sequence[Draft]) -> bool:
    """Return whether a draft is for a queue that doesn't accept all jobs."""
    for draft in drafts:  # noqa: SIM110 - each enqueue comes here, and a loop is quicker
        if queues.options_of(draft.queue).when_full is not WhenFull.ACCEPT:
            return True
    return False


def fitting(backend: Backend, drafts: Sequence[Draft]) -> Collection[str]:
    """Return the ids of the drafts to store, after a wait if a queue says so. Raise QueueFull, or NoRoom if async."""
    kept = {draft.id for draft in drafts}
    began = SYSTEM.monotonic()
    for queue, number in Counter(draft.queue for draft in drafts).items():
        options = queues.options_of(queue)
        if options.capacity is None or options.when_full is WhenFull.ACCEPT:
            continue
        while (depth := _depth(queue).look(backend, queue, options.capacity)) + number > options.capacity:
            if options.when_full is WhenFull.SHED:
                kept -= _too_many([one for one in drafts if one.queue == queue], options.capacity - depth)
                break
            _wait(QueueFull(queue, number, depth, options.capacity), options, began)
    return kept


def _depth(queue: str) -> _Depth:
    return _depths.setdefault(queue, _Depth())


def _too_many(drafts: Sequence[Draft], room: int) -> set[str]:
    """Return the ids of drafts to shed: those for which there is no room, unless they are urgent."""
    room -= sum(draft.priority <= LEAST_URGENT_KEPT for draft in drafts)
    rest = [draft for draft in drafts if draft.priority > LEAST_URGENT_KEPT]
    return {draft.id for draft in rest[max(0, room) :]}


def _wait(full: QueueFull, options: QueueOptions, began: float) -> None:
    """Wait for a moment, or raise QueueFull if this producer must not wait, or has waited long enough."""
    if options.when_full is WhenFull.RAISE:
        raise full
    if full.number > full.capacity:
        raise full.because("so many jobs never fit at once; enqueue fewer at a time")
    if any(one.in_atomic_block for one in connections.all(initialized_only=True)):
        raise full.because("a producer inside a transaction doesn't wait, because it would hold locks")
    if is_async.get():
        raise NoRoom(full, options.block_for)
    if SYSTEM.monotonic() - began >= options.block_for:
        raise full.because(f"it has had no room for {options.block_for:g} s")
    sleep(_dice.uniform(*_PAUSE))


def note(backend: Backend, stored: Sequence[Draft], shed: Sequence[Draft]) -> None:
    """Remember what this process has enqueued, and tell what it has shed once the caller's transaction commits."""
    for queue, number in Counter(draft.queue for draft in stored).items():
        if queues.options_of(queue).capacity is not None:
            _depth(queue).add(backend, number)
    if shed:
        backend.on_commit(lambda: _tell(backend, shed))


def _tell(backend: Backend, shed: Sequence[Draft]) -> None:
    for queue, number in Counter(draft.queue for draft in shed).items():
        depth, now = _depth(queue), SYSTEM.monotonic()
        with _lock:
            depth.shed += number
            total = depth.shed if now - depth.shed_told_at >= _COUNT_SHED_EVERY else 0
            if total:
                depth.shed, depth.shed_told_at = 0, now
        if total:
            backend.gauges.add_shed(queue, total)
        if now - depth.logged_at >= _LOG_SHED_EVERY:
            depth.logged_at = now
            logger.warning("The queue %s is full, and sheds jobs that are less urgent than usual", queue)
    announce.shed(shed)


def forget(*, setting: str = "JOBQUEUE", **_: object) -> None:
    """Forget the depths after a change of the settings."""
    if setting in ("JOBQUEUE", "DATABASES"):
        _depths.clear()


setting_changed.connect(forget)
