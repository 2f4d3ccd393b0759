"""Threads that run handlers. A thread wakes another one only if there is work that no thread has taken.

One thread then runs a batch of short jobs without a hand-off, and when a handler waits, the next thread is already
there. A queue that wakes a thread for each job is half as fast.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from jobqueue.worker.executor.outgoing import Outgoing

T = TypeVar("T")

#: Seconds after which an idle thread ends and closes its database connections.
IDLE_FOR = 60.0


class Slots(Generic[T]):
    """At most ``size`` threads that call ``work`` for each item, and ``end`` when they end."""

    def __init__(self, size: int, work: Callable[[T], None], end: Callable[[], None], outgoing: Outgoing) -> None:
        self._size = size
        self._work = work
        self._end = end
        self._outgoing = outgoing
        self._waiting: deque[T] = deque()
        self._idle: list[threading.Lock] = []
        self._threads = 0
        self._started: list[threading.Thread] = []
        self._on_its_way = False
        self._lock = threading.Lock()

    def submit(self, items: Iterable[T]) -> None:
        """Queue items, which are worked on in order as threads become free."""
        self._waiting.extend(items)
        self._wake_one()

    def close(self) -> None:
        """End the threads that wait for work, and wait for them. No more work comes."""
        with self._lock:
            self._size = 0
            idle, self._idle = self._idle, []
        for sleeper in idle:
            sleeper.release()
        for thread in self._started:
            thread.join(1.0)

    def _wake_one(self) -> None:
        with self._lock:
            if self._on_its_way:
                return
            if self._idle:
                self._on_its_way = True
                self._idle.pop().release()
            elif self._threads < self._size:
                self._start()

    def _start(self) -> None:
        self._on_its_way = True
        self._threads += 1
        try:
            thread = threading.Thread(target=self._slot, name="jobqueue-slot", daemon=True)
            thread.start()
            self._started = [one for one in self._started if one.is_alive()] + [thread]
        except RuntimeError:  # no more threads are available; the existing ones go on
            self._on_its_way = False
            self._threads -= 1
            if not self._threads:
                raise

    def _slot(self) -> None:
        own = threading.Lock()
        own.acquire()
        self._on_its_way = False
        while True:
            try:
                item = self._waiting.popleft()
            except IndexError:
                if self._sleep(own):
                    continue
                break
            self._taken(item)
            self._work(item)
            if self._is_relieved() and not self._sleep(own):
                break
        self._end()

    def _taken(self, _item: T) -> None:
        """Wake another thread for the other items, or to send finished outcomes while this item runs."""
        if (self._waiting or self._outgoing.pending) and not self._on_its_way:
            self._wake_one()

    @property
    def _working(self) -> int:
        """Return how many threads work or are about to."""
        return self._threads - len(self._idle)

    def _is_needed(self) -> bool:
        """Return whether a working thread must go on."""
        return bool(self._waiting)

    def _is_relieved(self) -> bool:
        """Return whether a thread must rest although items may wait."""
        return False

    def _sleep(self, own: threading.Lock) -> bool:
        """Wait for work. Return false if the thread must end."""
        self._outgoing.flush()
        with self._lock:
            if not self._size:
                return bool(self._waiting)
            if self._is_needed():
                return True  # even if another thread was faster: a thread that ends isn't counted
            self._idle.append(own)
        if not own.acquire(timeout=IDLE_FOR):
            with self._lock:
                if own in self._idle:
                    self._idle.remove(own)
                    self._threads -= 1
                    return False
            own.acquire()  # woken at the last moment
        self._on_its_way = False
        return bool(self._size or self._waiting)
