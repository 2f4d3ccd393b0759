"""The time limits. A job past its limit is asked to stop, then its executor is killed."""

from __future__ import annotations

import logging

from jobqueue.clock import NEVER, SYSTEM
from jobqueue.errors import StopReason
from jobqueue.policy.settling import settled
from jobqueue.records import Ending, Failure, Stopped
from jobqueue.worker.protocol.wire import Word
from jobqueue.worker.supervisor.claims import HeldClaim
from jobqueue.worker.supervisor.context import WorkerContext
from jobqueue.worker.supervisor.executor_link import ExecutorLink

logger = logging.getLogger("jobqueue")


class Limits:
    """Watches time limits, and jobs that were asked to stop."""

    def __init__(self, context: WorkerContext, *, may_kill: bool) -> None:
        self._context = context
        self._may_kill = may_kill

    @property
    def due(self) -> float:
        """Return the earliest deadline."""
        return self._context.claims.nearest

    def act(self) -> None:
        """Ask jobs past their time limit to stop. End the executors of jobs that did not stop in time."""
        now = SYSTEM.monotonic()
        if now < self.due:
            return
        for held in list(self._context.claims.running.values()):
            if held.deadline <= now:
                if held.reason is None:
                    self.ask(held, StopReason.TIME_LIMIT)
                else:
                    self._end_executor_of(held, now)
        for link in self._context.executors.links:
            if link.ends_at <= now or (link.ends_at < NEVER and self._holds_only_overdue(link)):
                link.ends_at = NEVER
                self._context.executors.kill(link)
        self._plan()

    def _plan(self) -> None:
        deadlines = [held.deadline for held in self._context.claims.running.values()]
        ends = [link.ends_at for link in self._context.executors.links]
        self._context.claims.nearest = min([*deadlines, *ends], default=NEVER)

    def ask(self, held: HeldClaim, reason: StopReason, grace: float | None = None) -> None:
        """Ask a handler to stop within the grace."""
        if held.key not in self._context.claims.running:
            return  # a finished job can't be stopped; the fence decides
        if held.reason is not None and not (reason is StopReason.LEASE_LOST and held.reason is not reason):
            return
        held.reason = reason
        held.deadline = SYSTEM.monotonic() + (self._context.options.stop_grace if grace is None else grace)
        self._context.claims.nearest = min(self._context.claims.nearest, held.deadline)
        if held.link is None:
            self._end_waiting(held, reason)
        else:
            held.link.say(Word.STOP, [[*held.key, reason.value]])
            self._context.executors.watch(held.link)

    def _end_waiting(self, held: HeldClaim, reason: StopReason) -> None:
        """End a suspect that waits for an executor of its own, and doesn't run yet."""
        self._context.executors.suspects.remove(held)
        if reason is StopReason.CANCELLED:
            failure = Failure.of(Ending.CANCELLED, message="it was cancelled before it ran")
            self._context.claims.finish(held, settled(held.claim, Stopped("cancelled"), failure))
        else:
            self._context.claims.drop(held.key)
            self._context.events.tell([self._context.events.lost(held)])

    def _end_executor_of(self, held: HeldClaim, now: float) -> None:
        """End the executor of a handler that did not stop. The executor's other jobs get the same grace to end."""
        held.deadline = NEVER
        link = held.link
        if link is None:
            return
        if not self._may_kill:
            logger.error(
                "Job %s (%s) does not stop although %s, and without executor processes it cannot be killed: its slot "
                "stays occupied. Run the worker with --processes 1.",
                held.claim.id,
                held.claim.type,
                held.reason,
            )
            return
        is_urgent = held.reason is StopReason.LEASE_LOST or self._holds_only_overdue(link)
        if (is_urgent or link.ends_at == NEVER) and not link.doomed:
            link.leaving = True
            link.ends_at = now if is_urgent else now + self._context.options.stop_grace
            self._context.executors.fill()
            logger.warning(
                "Job %s (%s) does not stop although %s: its executor %s is killed",
                held.claim.id,
                held.claim.type,
                held.reason,
                link.pid,
            )
            if is_urgent:
                link.ends_at = NEVER
                self._context.executors.kill(link)

    @staticmethod
    def _holds_only_overdue(link: ExecutorLink) -> bool:
        return all(held.reason is not None and held.deadline == NEVER for held in link.held.values())
