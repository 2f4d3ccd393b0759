"""The way of the buffered metrics to the table that all workers share: every ten seconds, and at the end."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from datetime import datetime
from functools import partial
from random import SystemRandom

from django.db import DatabaseError

from jobqueue.backends.orphans import Orphans
from jobqueue.clock import SYSTEM
from jobqueue.errors import NotMigrated
from jobqueue.policy.stretches import begin_of
from jobqueue.records.worker import NEWS_EVERY
from jobqueue.worker.database_link import TROUBLE
from jobqueue.worker.supervisor.context import WorkerContext

logger = logging.getLogger("jobqueue")

#: What could not be added is tried again after about so many seconds: workers that began together part.
_AGAIN = (0.5, 1.5)
#: How long a worker that ends tries to add the rest, and how often.
_LAST_WORDS = 2.0
_NAP = 0.02

_dice = SystemRandom()


class MetricsFlush:
    """Adds the buffer to the table; once a minute it also stores how deep the queue is, and prunes the history.

    Jobs never wait for it. Where the database is out of reach, or other sessions have locked the rows, the metrics wait
    in the buffer; where the database refuses them, that is logged once.
    """

    def __init__(self, context: WorkerContext) -> None:
        self._context = context
        self._at = 0.0
        self._left = 0
        self._sampled: datetime | None = None
        self._has_complained = False
        self._orphans = Orphans(context.backend)

    @property
    def due(self) -> float:
        """When it is next time."""
        return max(self._at, self._context.database.out_until)

    def act(self) -> None:
        """Add a page of the buffer, if it is time; after the last of them, look how deep the queue is."""
        began = SYSTEM.monotonic()
        if began < self.due:
            return
        left = self._left or self._context.metrics.pages  # what comes in meanwhile waits for the next time
        added = left > 0 and self._add_next()
        self._left = left - 1 if added else 0
        if self._left:
            self._at = began  # others have their turn between two pages
            return
        was_refused = left > 0 and not added and not self._has_complained
        self._at = began + (_dice.uniform(*_AGAIN) if was_refused else NEWS_EVERY.total_seconds())
        if not self._context.database.is_lost:
            self._look()

    def _look(self) -> None:
        """Look at the database's clock, and once a minute how deep the queue is."""
        now = self.set_clock()
        if now is None or begin_of(now, 60) == self._sampled:
            return
        if self._ask(partial(self._context.backend.sample, now)):
            self._sampled = begin_of(now, 60)
            self._ask(self._orphans.prune)

    def set_clock(self) -> datetime | None:
        """Have the buffer go by the database's clock."""
        now = self._context.database.ask(self._context.backend.now)
        if now is not None:
            self._context.metrics.set_clock(now)
        return now

    def close(self) -> None:
        """Add all that is left, for this worker ends; others may be at the same rows for a moment."""
        end = SYSTEM.monotonic() + _LAST_WORDS
        metrics, database = self._context.metrics, self._context.database
        while not (metrics.is_empty or database.is_lost) and SYSTEM.monotonic() < end:
            if not self._add_next():
                time.sleep(_NAP)
        if not metrics.is_empty:
            logger.warning("What this worker did last is missing from the figures")

    def _add_next(self) -> bool:
        """Add the next page of the buffer to the table; say whether there was one and it was added."""
        page = self._context.metrics.next_page()
        if page is None or not self._ask(partial(self._context.backend.tally, *page)):
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
            raise  # which is a matter of the way to the database
        except DatabaseError as error:
            self._complain(error)
        return False

    def _complain(self, error: Exception) -> None:
        if not self._has_complained:
            logger.error("The figures of this worker cannot be stored, its jobs go on", exc_info=error)
        self._has_complained = True
