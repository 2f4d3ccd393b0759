"""The worker's link to the database: retries while it is out of reach, and errors that a row causes."""

from __future__ import annotations

import logging
from collections.abc import Callable
from enum import Enum
from typing import Final, TypeVar, overload

from django.core.exceptions import ImproperlyConfigured
from django.db import DatabaseError, InterfaceError, InternalError, OperationalError, connections

from jobqueue.backends.sqlite import memory as sqlite_memory
from jobqueue.clock import SYSTEM
from jobqueue.errors import DatabaseBusy, NotMigrated

T = TypeVar("T")
D = TypeVar("D")

logger = logging.getLogger("jobqueue")

_FIRST_PAUSE = 0.05
_LONGEST_PAUSE = 30.0
#: The seconds between two log records about calls that rows make fail.
TELL_EVERY = 60.0
#: The seconds that a supervisor waits for a database in memory while a handler uses it.
_PATIENCE = 0.05
#: Errors of a database that is out of reach or can't work at the moment.
TROUBLE = (OperationalError, InterfaceError, InternalError, NotMigrated)


class NoAnswer(Enum):
    """The type of ``NO_ANSWER``."""

    NO_ANSWER = "no answer"


#: The value of ``otherwise`` for calls that may return ``None`` themselves.
NO_ANSWER: Final = NoAnswer.NO_ANSWER


class DatabaseLink:
    """The link to the database. While the database is out of reach, the pauses between calls grow up to 30 s."""

    def __init__(
        self, alias: str, held: Callable[[], int], lease: float, lies_in_row: Callable[[Exception], bool]
    ) -> None:
        self.out_until = 0.0
        self.recoveries = 0
        #: How many calls were made, and for how many seconds this process waited for their answers.
        self.calls, self.waited = 0, 0.0
        self.why = ""  # the error that made the database count as lost
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
        """Return whether the database was out of reach at the last call."""
        return bool(self._pause)

    def is_out(self, now: float) -> bool:
        """Return whether it is too early for another try."""
        return now < self.out_until

    @overload
    def ask(self, call: Callable[[], T]) -> T | None: ...

    @overload
    def ask(self, call: Callable[[], T], otherwise: D) -> T | D: ...

    def ask(self, call: Callable[[], T], otherwise: D | None = None) -> T | D | None:
        """Make a call and return its answer, or ``otherwise`` if it fails.

        Calls fail while the database is out of reach. A call also fails if a row causes an error and the backend can't
        set that row aside. The worker then continues with other calls.
        """
        began = SYSTEM.monotonic()
        try:
            try:
                with self._its_turn():
                    answer = call()
            finally:
                self.calls += 1
                self.waited += SYSTEM.monotonic() - began
        except DatabaseBusy:
            self.out_until = SYSTEM.monotonic() + _FIRST_PAUSE / 5  # another session writes, so the database is there
            return otherwise
        except Exception as error:
            if isinstance(error, TROUBLE) and not self._lies_in_row(error):
                self._lost(error)
            elif isinstance(error, ImproperlyConfigured):
                raise  # waiting won't help
            else:
                self._tell(error)
            return otherwise
        if self._pause:
            self._back()
        return answer

    def _tell(self, error: Exception) -> None:
        now = SYSTEM.monotonic()
        if now < self._told_until:
            return
        self._told_until = now + TELL_EVERY
        logger.error(
            "The database %r answered, but its data or a bug in this release made a call fail (logged at most once in "
            "%.0f s): %s",
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
        # While jobs run, a pause must not cost their leases.
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
