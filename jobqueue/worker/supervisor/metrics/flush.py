"""The flush of buffered metrics into the table that all workers share, every ten seconds and at the end."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from functools import partial
from random import SystemRandom

from django.db import DatabaseError

from jobqueue.clock import SYSTEM
from jobqueue.errors import NotMigrated
from jobqueue.records.worker import NEWS_EVERY
from jobqueue.worker.database_link import TROUBLE
from jobqueue.worker.supervisor.context import WorkerContext

logger = logging.getLogger("jobqueue")

#: Seconds until a failed flush is repeated, drawn at random so that workers that started together spread out.
_RETRY_AFTER = (0.5, 1.5)
#: How long an ending worker tries to store the rest, and the pause between tries.
_CLOSING_TIME = 2.0
_PAUSE = 0.02

_dice = SystemRandom()


class MetricsFlush:
    """Stores the buffer.

    Jobs never wait for it. While the database is out of reach, or other sessions have locked the rows, the metrics wait
    in the buffer. If the database refuses them, that is logged once.
    """

    def __init__(self, context: WorkerContext) -> None:
        self._context = context
        self._at = 0.0
        self._left = 0
        self._has_complained = False

    @property
    def due(self) -> float:
        """Return when the next flush is due."""
        return max(self._at, self._context.database.out_until)

    def act(self) -> None:
        """Store a page of the buffer if it is time. After the last page, read the database's clock."""
        began = SYSTEM.monotonic()
        if began < self.due:
            return
        left = self._left or self._context.metrics.pages  # new metrics wait for the next flush
        added = left > 0 and self._add_next()
        self._left = left - 1 if added else 0
        if self._left:
            self._at = began  # other parts have their turn between two pages
            return
        was_refused = left > 0 and not added and not self._has_complained
        self._at = began + (_dice.uniform(*_RETRY_AFTER) if was_refused else NEWS_EVERY.total_seconds())
        if not self._context.database.is_lost:
            self.set_clock()

    def set_clock(self) -> None:
        """Set the buffer's clock to the database's."""
        now = self._context.database.ask(self._context.backend.now)
        if now is not None:
            self._context.metrics.set_clock(now)

    def close(self) -> None:
        """Store the rest at the end of the worker. Other sessions may hold the rows for a moment.

        A worker that couldn't give back its jobs has waited for the database already, and doesn't wait again.
        """
        metrics, database = self._context.metrics, self._context.database
        end = SYSTEM.monotonic() + (0.0 if len(self._context.claims) else _CLOSING_TIME)
        while not (metrics.is_empty or database.is_lost) and SYSTEM.monotonic() < end:
            if not self._add_next():
                time.sleep(_PAUSE)
        if not metrics.is_empty:
            logger.warning("The last metrics of this worker could not be stored")

    def _add_next(self) -> bool:
        """Store the next page of the buffer. Return whether a page was stored."""
        page = self._context.metrics.next_page()
        if page is None or not self._ask(partial(self._context.backend.metrics.add, *page)):
            return False
        self._context.metrics.forget(*page)
        return True

    def _ask(self, verb: Callable[[], object]) -> bool:
        return bool(self._context.database.ask(lambda: self._tried(verb)))

    def _tried(self, verb: Callable[[], object]) -> object:
        try:
            return verb()
        except NotMigrated as error:
            self._complain(error)
        except TROUBLE:
            raise  # for the database link
        except DatabaseError as error:
            self._complain(error)
        return False

    def _complain(self, error: Exception) -> None:
        if not self._has_complained:
            logger.error("The metrics of this worker cannot be stored; its jobs go on", exc_info=error)
        self._has_complained = True
