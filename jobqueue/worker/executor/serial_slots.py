"""Threads for items that can only be worked on one after another: one goes on from each to the next.

With a thread for each, all but one would only wait for their turn, and to hand it over costs more than a short item.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress

from jobqueue.clock import NEVER, SYSTEM
from jobqueue.worker.executor.outgoing import Outgoing
from jobqueue.worker.executor.slots import Slots, T

#: Who takes longer than this over one item has others step in; and what is finished is sent after twice as long.
LOOK_EVERY = 0.01


class SerialSlots(Slots[T]):
    """Slots of which one works as long as it gets on; where it does not, ``look`` has others step in.

    Each of those takes one item, waits for its turn by itself, and can be interrupted meanwhile. When one of several
    has had its turn, it takes no other item, so that those who wait have theirs; unless that item is in a hurry.
    """

    due = NEVER
    _gets_on = False

    def __init__(self, size: int, work: Callable[[T], None], end: Callable[[], None], outgoing: Outgoing) -> None:
        super().__init__(size, work, end, outgoing)
        #: Those in a hurry that nobody has taken yet.
        self._hurried: set[T] = set()

    def submit(self, items: Iterable[T]) -> None:
        """Have items worked on, in order."""
        self._waiting.extend(items)
        if self.due == NEVER:
            self.due = SYSTEM.monotonic() + LOOK_EVERY
        with self._lock:
            somebody_works = self._working > 0
        if not somebody_works:
            self._wake_one()

    def look(self) -> None:
        """Have somebody step in, and what is finished be sent, if it is time."""
        now = SYSTEM.monotonic()
        if now < self.due:
            return
        gets_on, self._gets_on = self._gets_on, False
        if self._waiting and not gets_on:
            self._wake_one()
        self._outgoing.flush_late()
        self.due = now + LOOK_EVERY if self._waiting or self._outgoing.pending else NEVER

    def hurry(self, item: T) -> None:
        """Have an item that still waits taken next, and at once."""
        with suppress(ValueError):  # it is not there, or somebody has it
            self._waiting.remove(item)
            self._hurried.add(item)  # first: whoever takes it strikes it off
            self._waiting.appendleft(item)
            self._wake_one()

    def _pass_on(self, item: T) -> None:
        self._gets_on = True
        self._hurried.discard(item)

    def _is_needed(self) -> bool:
        return bool(self._waiting) and not self._is_relieved()

    def _is_relieved(self) -> bool:
        return self._working > 1 and not self._hurried
