"""Job ids and worker names.

Ids are ULIDs that sort by creation, also within a millisecond, across threads and forks, and if the clock goes back.
Rows of other programs may have any text as an id; :func:`portable` makes a safe name of it.
"""

from __future__ import annotations

import hashlib
import os
import re
import socket
import string
from datetime import UTC, datetime
from threading import Lock

from ulid.base32 import ENCODE

from jobqueue.clock import SYSTEM, Clock

_RANDOM_BITS = 80
# Within a millisecond only the last 40 bits, eight letters, count up. The letters before them are written once.
_TAIL_LENGTH = 8
_TAIL = (1 << 5 * _TAIL_LENGTH) - 1
_TOP = (_TAIL + 1) >> 1
#: Shifts of the first 18 of the 26 letters, two at a time.
_FRONT_SHIFTS = range(80, -1, -10)
_PAIRS = [one + other for one in ENCODE for other in ENCODE]
ULID_LENGTH = 26
_ULID = re.compile(r"[0-7][0-9A-HJKMNP-TV-Z]{25}")
#: The first letters are the moment. Python reads numbers of the base 32 with other letters.
_MOMENT_LENGTH = 10
_TO_PYTHON = str.maketrans(ENCODE, string.digits + string.ascii_lowercase[:22])
_BEGINNING = re.compile(r"[0-9A-HJKMNP-TV-Z]{1,26}")


class UlidFactory:
    """A source of ULIDs, each greater than the previous one in this process and in the process it was forked from."""

    def __init__(self, clock: Clock = SYSTEM) -> None:
        self._clock = clock
        self._lock = Lock()
        self._millisecond = 0
        self._random = 0
        self._head = ""

    def __call__(self) -> str:
        with self._lock:
            millisecond = int(self._clock.now().timestamp() * 1000)
            if millisecond > self._millisecond:
                self._start(millisecond)
            elif self._random & _TAIL == _TAIL:
                self._start(self._millisecond + 1)
            else:
                self._random += 1
            return self._head + _letters(self._random & _TAIL)

    def after_fork(self) -> None:
        """Start a new sequence: a child that continued the parent's would repeat its ids."""
        self._lock = Lock()
        self._start(self._millisecond + 1)

    def _start(self, millisecond: int) -> None:
        # The tail's top bit stays clear, so that a burst within one millisecond can count up.
        dice = int.from_bytes(os.urandom(10), "big") & ~_TOP
        front = (millisecond << _RANDOM_BITS | dice) >> 5 * _TAIL_LENGTH
        head = "".join(_PAIRS[front >> shift & 1023] for shift in _FRONT_SHIFTS)
        # One statement: an interruption between two would let the next id be less than the last.
        self._millisecond, self._random, self._head = millisecond, dice, head


def _letters(tail: int) -> str:
    return _PAIRS[tail >> 30] + _PAIRS[tail >> 20 & 1023] + _PAIRS[tail >> 10 & 1023] + _PAIRS[tail & 1023]


def least_id(moment: datetime) -> str:
    """Return the least ULID that the given moment or a later one can have."""
    millisecond = max(0, int(moment.timestamp() * 1000))
    return "".join(ENCODE[millisecond >> shift & 31] for shift in range(45, -1, -5))


def is_ulid(job_id: str) -> bool:
    """Return whether an id is one of ours rather than one that another program chose."""
    return _ULID.fullmatch(job_id) is not None


def moment_of(job_id: str) -> datetime | None:
    """Return when a ULID was made, to the millisecond, or ``None`` for an id that another program chose."""
    if not is_ulid(job_id):
        return None
    milliseconds = int(job_id[:_MOMENT_LENGTH].translate(_TO_PYTHON), 32)
    try:
        return datetime.fromtimestamp(milliseconds / 1000, UTC)
    except (OverflowError, ValueError):  # after the year 9999
        return None


def begins_ulid(text: str) -> bool:
    """Return whether a text may be the beginning of a ULID."""
    return _BEGINNING.fullmatch(text) is not None


def portable(job_id: str) -> str:
    """Return a name for a job in file names and headers: a ULID as it is, the SHA-256 of any other id.

    A row of another program may have the id ``/../../etc/passwd``, or one with a line break.
    """
    if is_ulid(job_id):
        return job_id
    return hashlib.sha256(job_id.encode("utf-8", "surrogatepass")).hexdigest()


def new_owner() -> str:
    """Return a unique name for a worker, ``host:pid:nonce``. The nonce differs at each start."""
    return f"{socket.gethostname()[:200]}:{os.getpid()}:{os.urandom(8).hex()}"


new_id = UlidFactory()
os.register_at_fork(after_in_child=new_id.after_fork)
