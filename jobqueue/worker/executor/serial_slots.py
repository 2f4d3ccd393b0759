"""Slots for items that can only run one after another: one thread goes from item to item.

With a thread for each item, all but one would wait for their turn, and handing over the turn costs more than a short
item.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress

from jobqueue.clock import NEVER, SYSTEM
from jobqueue.worker.executor.outgoing import Outgoing
from jobqueue.worker.executor.slots import Slots, T

#: After this many seconds with one item, another thread steps in. Finished outcomes are sent after twice as long.
LOOK_EVERY = 0.01


class SerialSlots(Slots[T]):
    """Slots in which only one thread works as long as it makes progress. If not, ``look`` wakes another thread.

    Each further thread takes one item, waits for its turn, and can be interrupted meanwhile. A thread that has had its
    turn takes no other item while others wait, unless an item is in a hurry.
    """

    due = NEVER
    _gets_on = False

    def __init__(self, size: int, work: Callable[[T], None], end: Callable[[], None], outgoing: Outgoing) -> None:
        super().__init__(size, work, end, outgoing)
        #: Items in a hurry that no thread has taken yet.
        self._hurried: set[T] = set()

    def submit(self, items: Iterable[T]) -> None:
        """Queue items, which are worked on in order."""
        self._waiting.extend(items)
        if self.due == NEVER:
            self.due = SYSTEM.monotonic() + LOOK_EVERY
        with self._lock:
            somebody_works = self._working > 0
        if not somebody_works:
            self._wake_one()

    def look(self) -> None:
        """Wake another thread and send finished outcomes, if it is time."""
        now = SYSTEM.monotonic()
        if now < self.due:
            return
        gets_on, self._gets_on = self._gets_on, False
        if self._waiting and not gets_on:
            self._wake_one()
        self._outgoing.flush_late()
        self.due = now + LOOK_EVERY if self._waiting or self._outgoing.pending else NEVER

    def hurry(self, item: T) -> None:
        """Move a waiting item to the front, and start it at once."""
        with suppress(ValueError):  # it is gone, or a thread has taken it
            self._waiting.remove(item)
            self._hurried.add(item)  # before it is queued: the thread that takes it removes it
            self._waiting.appendleft(item)
            self._wake_one()

    def _taken(self, item: T) -> None:
        self._gets_on = True
        self._hurried.discard(item)

    def _is_needed(self) -> bool:
        return bool(self._waiting) and not self._is_relieved()

    def _is_relieved(self) -> bool:
        return self._working > 1 and not self._hurried
