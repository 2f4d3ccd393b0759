"""The roster: does the duties that are due, and takes turns with other workers at those that one does for all."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta

from jobqueue.clock import SYSTEM
from jobqueue.errors import DatabaseBusy, NotMigrated
from jobqueue.policy.redaction import redact_text
from jobqueue.worker.database_link import NO_ANSWER, TROUBLE
from jobqueue.worker.supervisor.context import WorkerContext
from jobqueue.worker.supervisor.duties.duty import Duty

logger = logging.getLogger("jobqueue")

#: Seconds until a turn is tried again that the database gave no answer about.
TRY_AGAIN = 1.0


@dataclass(slots=True)
class Entry:
    """A duty, when it is due next, and the error of its last turn."""

    duty: Duty
    due: float = 0.0
    failure: str = ""


class Roster:
    """Does each duty when it is due. A duty that fails delays no other and is logged once, until it succeeds again."""

    def __init__(self, context: WorkerContext, duties: Iterable[type[Duty]]) -> None:
        self._context = context
        self._entries = [Entry(made) for duty in duties if (made := duty(context)).is_wanted]
        self._soonest = 0.0

    @property
    def due(self) -> float:
        """Return when the next duty is due."""
        return max(self._soonest, self._context.database.out_until)

    def begin(self) -> None:
        """Do the first duty, which reports that the worker is up, before the worker takes jobs."""
        self._do(self._entries[0])

    def act(self) -> None:
        """Do the duties that are due."""
        now = SYSTEM.monotonic()
        if now < self.due:
            return
        for entry in self._entries:
            if entry.due <= now and not self._context.database.is_out(SYSTEM.monotonic()):
                self._do(entry)
        self._soonest = min(entry.due for entry in self._entries)

    def _do(self, entry: Entry) -> None:
        rest = self._take_turn(entry) if entry.duty.is_elected else self._try(entry)
        entry.due = SYSTEM.monotonic() + (TRY_AGAIN if rest is None else rest)

    def _try(self, entry: Entry) -> float | None:
        """Do a duty, whatever it raises. Return the seconds to the next turn, or ``None`` if the database is away."""
        return self._context.database.ask(lambda: self._done(entry))

    def _done(self, entry: Entry) -> float:
        try:
            rest = entry.duty.act()
        except Exception as error:
            if self._is_trouble(error):
                raise  # for the database link
            self._failed(entry, error)
            return entry.duty.every
        entry.failure = ""
        return entry.duty.every if rest is None else rest

    def _is_trouble(self, error: Exception) -> bool:
        """Return whether an error says that the database is out of reach or busy, rather than that a duty failed."""
        if isinstance(error, NotMigrated) or self._context.backend.lies_in_row(error):
            return False
        return isinstance(error, (DatabaseBusy, *TROUBLE))

    def _failed(self, entry: Entry, error: Exception) -> None:
        if not entry.failure:
            logger.error("The duty %r of this worker failed, and is tried again", entry.duty.name, exc_info=error)
        entry.failure = redact_text(f"{type(error).__name__}: {error}")

    def _take_turn(self, entry: Entry) -> float | None:
        """Do an elected duty if it is this worker's turn."""
        context, duty = self._context, entry.duty
        if context.stopping:
            return duty.every
        wait = context.database.ask(lambda: self._begin(duty), NO_ANSWER)
        if wait is NO_ANSWER:
            return None
        if wait is not None:
            return wait.total_seconds()
        began = SYSTEM.monotonic()
        rest = self._try(entry)
        if rest is None:  # this worker, or another one, takes the turn again
            return None
        rest = min(rest, duty.every)
        took = timedelta(seconds=SYSTEM.monotonic() - began)
        context.database.ask(
            lambda: context.backend.duties.end(duty.name, context.owner, timedelta(seconds=rest), took, entry.failure)
        )
        return rest

    def _begin(self, duty: Duty) -> timedelta | None:
        every = timedelta(seconds=duty.every)
        try:
            return self._context.backend.duties.begin(duty.name, self._context.owner, every)
        except NotMigrated:
            logger.warning("The duty %r waits for a migration: its table is missing", duty.name)
            return every
