"""The messages from executors: outcomes to store, progress to record, and whether signals have receivers."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Any

from jobqueue.clock import NEVER, SYSTEM
from jobqueue.errors import StopReason
from jobqueue.records import ClaimKey, Event, EventKind, Progress
from jobqueue.worker.protocol import testimony
from jobqueue.worker.protocol.testimony import Follower
from jobqueue.worker.protocol.wire import BadMessage, Word
from jobqueue.worker.supervisor.claims import HeldClaim
from jobqueue.worker.supervisor.context import WorkerContext
from jobqueue.worker.supervisor.executor_link import READS, ExecutorLink

logger = logging.getLogger("jobqueue")

#: Seconds between two writes of progress reports.
STORE_PROGRESS_EVERY = 0.3
#: An executor that doesn't complete a message within these seconds gets no more jobs: a handler that keeps the
#: interpreter lock may block it. Running jobs have their time limits.
LONGEST_MESSAGE = 10.0


class Outcomes:
    """Handles the messages of executors."""

    def __init__(self, context: WorkerContext) -> None:
        self._context = context
        self._reports: dict[ClaimKey, str] = {}
        self._store_at = 0.0
        #: Executors with an incomplete message, and since when.
        self._midway: dict[ExecutorLink, float] = {}
        self._heeded: dict[Word, Callable[[ExecutorLink, Any], None]] = {
            Word.READY: self._ready,
            Word.OUTCOMES: self._outcomes,
            Word.PROGRESS: self._progress,
        }

    @property
    def due(self) -> float:
        """Return when to store progress reports, or when an incomplete message is overdue."""
        end = min(self._midway.values()) + LONGEST_MESSAGE if self._midway else NEVER
        return min(self._store_due, end)

    @property
    def _store_due(self) -> float:
        return max(self._store_at, self._context.database.out_until) if self._reports else NEVER

    def act(self) -> None:
        """Store progress reports, and retire executors with overdue messages, if it is time."""
        now = SYSTEM.monotonic()
        if now >= self._store_due:
            self._store(now)
        for link in [one for one, since in self._midway.items() if since + LONGEST_MESSAGE <= now]:
            del self._midway[link]
            if link in self._context.executors.links and not link.leaving:
                logger.error(
                    "Executor %s has not completed a message for %g s: it gets no more jobs",
                    link.pid,
                    LONGEST_MESSAGE,
                )
                self._context.executors.retire(link)

    def _store(self, now: float) -> None:
        self._store_at = now + STORE_PROGRESS_EVERY
        reports, self._reports = self._reports, {}
        held = [Progress(*key, self._context.owner, text) for key, text in reports.items()]
        locked = self._context.database.ask(lambda: self._context.backend.progress(held))
        self._reports = {(one.id, one.fence): one.report for one in locked or ()}  # no message was read meanwhile

    def hear(self, link: ExecutorLink, reads: int = READS) -> None:
        """Handle the messages of an executor. An executor that sends an invalid message is killed."""
        was_deaf = link.deaf
        try:
            self._heed(link, reads)
        except BadMessage as error:
            logger.error(
                "Executor %s sent an invalid message: %s. It is killed, its jobs are settled as after a crash, and "
                "another executor takes its place. Look for code that writes to files it has not opened.",
                link.pid,
                error,
            )
            self._midway.pop(link, None)
            self._context.executors.end(link, str(error))
            return
        if link.deaf and not was_deaf:
            self._midway.pop(link, None)
            self._context.executors.hang_up(link)
        elif link.leaving:
            self._context.executors.dismiss_if_idle(link)

    def _heed(self, link: ExecutorLink, reads: int) -> None:
        for word, content in link.hear(reads):
            if word not in self._heeded:
                raise BadMessage(f"the word {word}, which only supervisors use")
            self._heeded[word](link, content)
            self._midway.pop(link, None)
        if link.inbox.is_midway and not link.deaf:
            self._midway.setdefault(link, SYSTEM.monotonic())

    def _ready(self, link: ExecutorLink, content: Any) -> None:
        listening, tracing = testimony.ready(content)
        self._context.executors.born(link, listening=listening, tracing=tracing)
        self._context.events.tell_the_rest()

    def _outcomes(self, link: ExecutorLink, content: Any) -> None:
        claims, now = self._context.claims, SYSTEM.monotonic()
        for held, said in testimony.outcomes(content, link.held, self._context.owner):
            del link.held[held.key]
            self._reports.pop(held.key, None)  # the outcome contains the last report
            if isinstance(said, list):
                self._stored(held, said)
            elif held.key not in claims.running:
                continue  # it was given up before the outcome came
            elif said is None or held.reason is StopReason.LEASE_LOST:
                self._lost(held)
            else:
                claims.finish(held, said, now)

    def _stored(self, held: HeldClaim, followed: Iterable[Follower]) -> None:
        """Record that a handler's own transaction has stored its completion."""
        self._context.claims.drop(held.key)
        self._context.metrics.completed(held)
        self._context.changed_at = SYSTEM.monotonic()
        events = [self._context.events.completed_itself(held)]
        worker = self._context.events.worker
        for child, kind, queue, refusal in followed:
            events.append(Event(EventKind.FOLLOWED, child, kind, queue, worker=worker, error=refusal))
        self._context.events.tell(events)

    def _progress(self, link: ExecutorLink, content: Any) -> None:
        running = self._context.claims.running
        for claim, report in testimony.reports(content, link.held):
            if claim in running:
                self._reports[claim] = report

    def _lost(self, held: HeldClaim) -> None:
        self._context.claims.drop(held.key)
        self._context.events.tell([self._context.events.lost(held)])
