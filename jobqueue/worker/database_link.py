"""The link to the database: calls that fail are put off where it is out of reach, and given up where a row fails."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

from django.core.exceptions import ImproperlyConfigured
from django.db import DatabaseError, InterfaceError, InternalError, OperationalError, connections

from jobqueue.backends import sqlite_memory
from jobqueue.clock import SYSTEM
from jobqueue.errors import DatabaseBusy, NotMigrated

T = TypeVar("T")

logger = logging.getLogger("jobqueue")

_FIRST_PAUSE = 0.05
_LONGEST_PAUSE = 30.0
#: How often, in seconds, a call that fails for what a row holds is told of.
TELL_EVERY = 60.0
#: How long a supervisor waits for a database in memory that a handler uses: it has more to do than that.
_PATIENCE = 0.05
#: What says that the database is not there, or will not do anything just now.
TROUBLE = (OperationalError, InterfaceError, InternalError, NotMigrated)


class DatabaseLink:
    """The way to the database: where it is out of reach, calls are put off for longer and longer, up to 30 s."""

    def __init__(
        self, alias: str, held: Callable[[], int], lease: float, lies_in_row: Callable[[Exception], bool]
    ) -> None:
        self.out_until = 0.0
        self.recoveries = 0
        self.why = ""  # it was lost
        self._alias = alias
        self._held = held
        self._lease = lease
        self._lies_in_row = lies_in_row
        self._told_until = 0.0
        self._pause = 0.0
        self._since = 0.0
        self._its_turn = sqlite_memory.turns(_PATIENCE)

    @property
    def is_lost(self) -> bool:
        """Whether it was out of reach when it was last asked for anything."""
        return bool(self._pause)

    def is_out(self, now: float) -> bool:
        """Whether it is too early to try again."""
        return now < self.out_until

    def ask(self, call: Callable[[], T]) -> T | None:
        """Make a call and return its answer; ``None``, which no answer may be, says that there is none.

        Where the database is out of reach, that is so for a while. Where a row is the reason, which the backend could
        not find and set aside, the call is given up, and the worker goes on with all else.
        """
        try:
            with self._its_turn():
                answer = call()
        except DatabaseBusy:
            self.out_until = SYSTEM.monotonic() + _FIRST_PAUSE / 5  # somebody writes; it is there
            return None
        except Exception as error:
            if isinstance(error, TROUBLE) and not self._lies_in_row(error):
                self._lost(error)
            elif isinstance(error, ImproperlyConfigured):
                raise  # nothing that anybody waits for will change it
            else:
                self._tell(error)
            return None
        if self._pause:
            self._back()
        return answer

    def _tell(self, error: Exception) -> None:
        now = SYSTEM.monotonic()
        if now < self._told_until:
            return
        self._told_until = now + TELL_EVERY
        logger.error(
            "The database %r answered, and what it holds, or a fault of this release, made a call fail (told at most "
            "once in %.0f s): %s",
            self._alias,
            TELL_EVERY,
            _first_line(error),
            exc_info=error,
        )

    def _lost(self, error: Exception) -> None:
        now, self.why = SYSTEM.monotonic(), _first_line(error)
        if not self._pause:
            self._since = now
            logger.error("The database %r is out of reach: %s", self._alias, self.why)
        # While jobs run, their leases are at stake; a pause must not be what loses them.
        longest = min(_LONGEST_PAUSE, self._lease / 10) if self._held() else _LONGEST_PAUSE
        self._pause = min(max(_FIRST_PAUSE, 2 * self._pause), longest)
        self.out_until = now + self._pause
        try:
            connections[self._alias].close()
        except DatabaseError:
            logger.debug("The broken connection could not be closed", exc_info=True)

    def _back(self) -> None:
        seconds = SYSTEM.monotonic() - self._since
        logger.warning("The database %r is back after %.1f s", self._alias, seconds)
        self._pause = 0.0
        self.recoveries += 1


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
