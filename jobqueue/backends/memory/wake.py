"""Wake-ups within one process: a pipe for each listener."""

from __future__ import annotations

import os
from collections.abc import Callable
from select import select

from jobqueue.backends.wake import Listener


class MemoryListener(Listener):
    """A pipe that wake-ups write to."""

    def __init__(self, forget: Callable[[MemoryListener], object]) -> None:
        self._forget = forget
        self._reading, self._writing = os.pipe()
        os.set_blocking(self._writing, False)

    def fileno(self) -> int:
        return self._reading

    def notify(self) -> None:
        """Make the pipe readable; a full one is readable already."""
        try:
            os.write(self._writing, b"!")
        except BlockingIOError:
            return

    def hear(self, timeout: float) -> bool:
        heard = bool(select([self._reading], [], [], timeout)[0])
        if heard:
            os.read(self._reading, 65_536)
        return heard

    def self_test(self, timeout: float = 2.0) -> bool:
        self.notify()
        return self.hear(timeout)

    def close(self) -> None:
        self._forget(self)
        os.close(self._reading)
        os.close(self._writing)
