"""The shutdown of a worker, in two steps. A first signal stops claiming, a second gives running jobs back."""

from __future__ import annotations

import logging

from jobqueue.clock import NEVER, SYSTEM
from jobqueue.policy.settling import released
from jobqueue.records import WorkerRequest
from jobqueue.worker.protocol.wire import Word
from jobqueue.worker.signals import Signals
from jobqueue.worker.supervisor.context import WorkerContext

logger = logging.getLogger("jobqueue")

#: How long an ending worker tries to store its settlements if the database is out of reach.
LAST_WORDS = 2.0


class Shutdown:
    """Takes the two steps, and decides when the worker may end."""

    def __init__(self, context: WorkerContext, signals: Signals, *, has_processes: bool) -> None:
        self._context = context
        self._signals = signals
        self._has_processes = has_processes
        self._ends_at = NEVER
        self._released_at = NEVER

    @property
    def due(self) -> float:
        """Return when the grace ends."""
        return self._ends_at if self._released_at == NEVER else NEVER

    @property
    def last_words(self) -> float:
        """Return until when settlements may wait for the database."""
        return min(self._ends_at, self._released_at) + LAST_WORDS

    def act(self) -> None:
        """Take the step that is due."""
        is_asked = self._signals.asked or self._context.request is WorkerRequest.STOP
        if is_asked and not self._context.stopping:
            self.begin()
        is_late = SYSTEM.monotonic() >= self._ends_at
        if (self._signals.asked > 1 or is_late) and self._released_at == NEVER:
            self._release()

    def begin(self) -> None:
        """Claim nothing more, and let handlers know that they may end early."""
        context = self._context
        context.stopping = True
        self._ends_at = SYSTEM.monotonic() + context.options.shutdown_grace
        if len(context.claims):
            logger.info(
                "Stopping: jobs under way: %d; they have %g s to end; send the signal again to stop at once",
                len(context.claims),
                context.options.shutdown_grace,
            )
        else:
            logger.info("Stopping: no job is under way")
        context.executors.tell_all(Word.DRAIN)
        for held in list(context.executors.suspects):
            context.claims.finish(held, released(held.claim, "its worker stopped before it began"))
        context.executors.suspects.clear()

    def _release(self) -> None:
        """Give back running jobs, once it is certain that they don't run any longer."""
        self._released_at = SYSTEM.monotonic()
        context = self._context
        if context.claims.running:
            logger.warning("Giving back jobs that did not end in time: %d", len(context.claims.running))
        if self._has_processes:
            for link in [*context.executors.links]:
                if link.held:
                    context.executors.kill(link)
            return
        for held in list(context.claims.running.values()):
            context.claims.finish(held, released(held.claim, "its worker stopped"))
