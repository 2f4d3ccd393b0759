"""ULIDs that sort by creation (within a millisecond, over threads and forks, whatever the clock), and worker names."""

from __future__ import annotations

import os
import socket
from threading import Lock

from ulid import ULID

from jobqueue.clock import SYSTEM, Clock

_RANDOM_BITS = 80
_LAST_RANDOM = (1 << _RANDOM_BITS) - 1


class UlidFactory:
    """Makes ULIDs, each greater than the one before it in this process and in the process it was forked from."""

    def __init__(self, clock: Clock = SYSTEM) -> None:
        self._clock = clock
        self._lock = Lock()
        self._millisecond = 0
        self._random = 0

    def __call__(self) -> str:
        with self._lock:
            millisecond = int(self._clock.now().timestamp() * 1000)
            if millisecond > self._millisecond:
                self._start(millisecond)
            elif self._random == _LAST_RANDOM:
                self._start(self._millisecond + 1)
            else:
                self._random += 1
            value = (self._millisecond << _RANDOM_BITS) | self._random
        return str(ULID(value.to_bytes(16, "big")))

    def after_fork(self) -> None:
        """Leave the parent's sequence: a child that counted on from it would repeat the parent's ids."""
        self._lock = Lock()
        self._start(self._millisecond + 1)

    def _start(self, millisecond: int) -> None:
        self._millisecond = millisecond
        # The top bit stays clear, so that a burst within one millisecond has room to count up.
        self._random = int.from_bytes(os.urandom(10), "big") >> 1


def new_owner() -> str:
    """Name a worker as ``host:pid:nonce``; the nonce makes a name that no other boot ever had or will have."""
    return f"{socket.gethostname()[:200]}:{os.getpid()}:{os.urandom(8).hex()}"


new_id = UlidFactory()
os.register_at_fork(after_in_child=new_id.after_fork)
