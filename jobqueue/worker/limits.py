"""Stopping a job that must not go on: asked first, then left without company, then killed."""

from __future__ import annotations

import logging

from jobqueue.clock import SYSTEM
from jobqueue.errors import StopReason
from jobqueue.policy.settling import settled
from jobqueue.records import Ending, Failure, Stopped
from jobqueue.worker.holdings import NEVER, Held
from jobqueue.worker.member import Member
from jobqueue.worker.place import Place
from jobqueue.worker.wire import Word

logger = logging.getLogger("jobqueue")


class Limits:
    """Watches time limits, and those who were asked to stop."""

    def __init__(self, place: Place, *, may_kill: bool) -> None:
        self._place = place
        self._may_kill = may_kill

    @property
    def due(self) -> float:
        """When somebody's time is up, at the earliest."""
        return self._place.holdings.nearest

    def act(self) -> None:
        """Take the next step against everyone whose time is up."""
        now = SYSTEM.monotonic()
        if now < self.due:
            return
        for held in list(self._place.holdings.running.values()):
            if held.deadline <= now:
                if held.reason is None:
                    self.ask(held, StopReason.TIME_LIMIT)
                else:
                    self._condemn(held, now)
        for member in self._place.crew.members:
            if member.ends_at <= now or (member.ends_at < NEVER and self._only_condemned(member)):
                member.ends_at = NEVER
                self._place.crew.kill(member)
        self._plan()

    def _plan(self) -> None:
        deadlines = [held.deadline for held in self._place.holdings.running.values()]
        ends = [member.ends_at for member in self._place.crew.members]
        self._place.holdings.nearest = min([*deadlines, *ends], default=NEVER)

    def ask(self, held: Held, reason: StopReason, grace: float | None = None) -> None:
        """Ask a handler to stop; what it does about that within the grace is its own affair."""
        if held.key not in self._place.holdings.running:
            return  # what is finished cannot be stopped; the fence decides
        if held.reason is not None and not (reason is StopReason.LEASE_LOST and held.reason is not reason):
            return
        held.reason = reason
        held.deadline = SYSTEM.monotonic() + (self._place.options.stop_grace if grace is None else grace)
        self._place.holdings.nearest = min(self._place.holdings.nearest, held.deadline)
        if held.member is None:
            self._take_out_of_line(held, reason)
        else:
            held.member.say(Word.STOP, [[*held.key, reason.value]])
            self._place.crew.watch(held.member)

    def _take_out_of_line(self, held: Held, reason: StopReason) -> None:
        """End what waits for an executor of its own, and so does not run yet."""
        self._place.crew.suspects.remove(held)
        if reason is StopReason.CANCELLED:
            failure = Failure.of(Ending.CANCELLED, message="it was cancelled before it ran")
            self._place.holdings.finish(held, settled(held.claim, Stopped("cancelled"), failure))
        else:
            self._place.holdings.drop(held.key)
            self._place.teller.tell([self._place.teller.lost(held)])

    def _condemn(self, held: Held, now: float) -> None:
        """Have an executor end whose handler did not stop; what else runs in it has as long as the handler had."""
        held.deadline = NEVER
        member = held.member
        if member is None:
            return
        if not self._may_kill:
            logger.error(
                "Job %s (%s) does not stop although %s, and without processes nothing can end it: its slot stays "
                "occupied. Run the worker with --processes 1.",
                held.claim.id,
                held.claim.type,
                held.reason,
            )
            return
        is_urgent = held.reason is StopReason.LEASE_LOST or self._only_condemned(member)
        if (is_urgent or member.ends_at == NEVER) and not member.doomed:
            member.leaving = True
            member.ends_at = now if is_urgent else now + self._place.options.stop_grace
            self._place.crew.fill()
            logger.warning(
                "Job %s (%s) does not stop although %s: its executor %s is ended",
                held.claim.id,
                held.claim.type,
                held.reason,
                member.pid,
            )
            if is_urgent:
                member.ends_at = NEVER
                self._place.crew.kill(member)

    @staticmethod
    def _only_condemned(member: Member) -> bool:
        return all(held.reason is not None and held.deadline == NEVER for held in member.held.values())
