"""The end of a worker in two steps: the first signal ends the taking, the second gives back what runs."""

from __future__ import annotations

import logging
import signal
import socket
import threading
from typing import Any

from jobqueue.clock import SYSTEM
from jobqueue.policy.settling import released
from jobqueue.worker.holdings import NEVER
from jobqueue.worker.place import Place
from jobqueue.worker.wire import Word

logger = logging.getLogger("jobqueue")

#: How long a worker that ends tries to store what it still has to say, if the database is out of reach.
LAST_WORDS = 2.0


class Signals:
    """Counts SIGTERM and SIGINT, and is readable when one has come."""

    def __init__(self) -> None:
        self.bell, self._ringer = socket.socketpair()
        self.bell.setblocking(False)
        self._ringer.setblocking(False)
        self.asked = 0
        self._before: dict[signal.Signals, Any] = {}
        if threading.current_thread() is threading.main_thread():
            signal.set_wakeup_fd(self._ringer.fileno(), warn_on_full_buffer=False)
            self._before = {number: signal.signal(number, self._count) for number in _asking()}

    def _count(self, _number: int, _frame: object) -> None:
        self.asked += 1

    def ask(self) -> None:
        """Do as if a signal had come; callable from any thread."""
        self.asked += 1
        self._ringer.send(b"!")

    def close(self) -> None:
        """Leave the signals to whoever had them before."""
        if self._before:
            signal.set_wakeup_fd(-1)
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self.bell.close()
        self._ringer.close()

    def hear(self) -> None:
        """Take note of what rang."""
        try:
            self.bell.recv(64)
        except BlockingIOError:
            return


def _asking() -> list[signal.Signals]:
    """List what asks a worker to stop: a terminal that closes too, unless somebody said nohup."""
    asking = [signal.SIGTERM, signal.SIGINT]
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        asking.append(signal.SIGHUP)
    return asking


class Shutdown:
    """Takes the two steps, and knows when the worker may end."""

    def __init__(self, place: Place, signals: Signals, *, has_processes: bool) -> None:
        self._place = place
        self._signals = signals
        self._has_processes = has_processes
        self._ends_at = NEVER
        self._released_at = NEVER

    @property
    def due(self) -> float:
        """When the grace is over."""
        return self._ends_at if self._released_at == NEVER else NEVER

    @property
    def last_words(self) -> float:
        """Until when what is finished may wait for the database."""
        return min(self._ends_at, self._released_at) + LAST_WORDS

    def act(self) -> None:
        """Take the step that is due."""
        if self._signals.asked and not self._place.stopping:
            self.begin()
        is_late = SYSTEM.monotonic() >= self._ends_at
        if (self._signals.asked > 1 or is_late) and self._released_at == NEVER:
            self._release()

    def begin(self) -> None:
        """Take nothing more, and let handlers know that they may end early."""
        place = self._place
        place.stopping = True
        self._ends_at = SYSTEM.monotonic() + place.options.shutdown_grace
        if len(place.holdings):
            logger.info(
                "Stopping: jobs under way: %d; they have %g s to end; the same signal once more stops at once",
                len(place.holdings),
                place.options.shutdown_grace,
            )
        else:
            logger.info("Stopping: no job is under way")
        place.crew.tell_all(Word.DRAIN)
        for held in list(place.crew.suspects):
            place.holdings.finish(held, released(held.claim, "its worker stopped before it began"))
        place.crew.suspects.clear()

    def _release(self) -> None:
        """Give back what still runs, once it certainly does not run any more."""
        self._released_at = SYSTEM.monotonic()
        place = self._place
        if place.holdings.running:
            logger.warning("Giving back what did not end in time, jobs: %d", len(place.holdings.running))
        if self._has_processes:
            for member in [*place.crew.members]:
                if member.held:
                    place.crew.kill(member)
            return
        for held in list(place.holdings.running.values()):
            place.holdings.finish(held, released(held.claim, "its worker stopped"))
