"""The run of all jobs that are due, in the test's process and inside its transaction."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Literal

from jobqueue import backends, conf, queues, signals
from jobqueue.backends.base import Backend
from jobqueue.durations import in_seconds
from jobqueue.errors import LeaseLost, Verdict
from jobqueue.handlers.registry import registry
from jobqueue.observe import announce
from jobqueue.policy.settling import released
from jobqueue.records import Amendment, Assignment, Claim, ClaimRequest, Event, EventKind, Followed, Settlement
from jobqueue.states import Move
from jobqueue.testing.attempts import AttemptReport, WatchedRun, settlement_of
from jobqueue.worker.supervisor.events import KINDS

#: Raise a handler's error once its outcome is stored, or only keep it in the report.
Errors = Literal["raise", "collect"]
#: The owner of the claims of a test, and the worker that its signals name.
OWNER = "a test"
#: More attempts than any test wants.
MOST = 1_000


class Drain:
    """Claims the jobs that are due one by one, runs them and stores their outcomes.

    ``next_due`` says how long after that the next job is due; ``None`` means never.
    """

    def __init__(self, backend: Backend, *, errors: Errors = "raise", retries: bool = True, limit: int = MOST) -> None:
        self.backend = backend
        self.errors = errors
        self.retries = retries
        self.limit = limit
        self.reports: list[AttemptReport] = []
        self.next_due: timedelta | None = None
        self._begun = 0

    def run(self) -> list[AttemptReport]:
        """Run jobs until none is due. Raise AssertionError if the limit is reached first."""
        while (claim := self._claim()) is not None:
            self._begun += 1
            if self._begun > self.limit:
                self._give_back(claim)
                raise AssertionError(
                    f"{self.limit:,} attempts have run, and job {claim.id} ({claim.type}) is still due. Does a "
                    "handler enqueue or snooze itself for ever? If not, raise the limit."
                )
            self._attempt(claim)
        return self.reports

    def _claim(self) -> Claim | None:
        orders = queues.own_orders()
        entries = tuple(conf.get("QUEUES")) if orders else ()
        wanted = ClaimRequest(limit=1, types=registry.names, entries=entries, queue_options=orders)
        while True:
            cycle = self.backend.cycle(OWNER, (), wanted)
            if cycle.claims:
                return cycle.claims[0]
            if cycle.next_due != timedelta(0):
                self.next_due = cycle.next_due
                return None

    def _give_back(self, claim: Claim) -> None:
        self.backend.cycle(OWNER, (released(claim, "too many attempts in one test"),))

    def _attempt(self, claim: Claim) -> None:
        running = WatchedRun(Assignment._make(claim[: len(Assignment._fields)]))
        announce.send(_event(EventKind.STARTED, claim))
        outcome = running.outcome()
        settlement = settlement_of(running, outcome)
        followed = outcome.followed if outcome.stored else self._store(settlement)
        report = running.report_of(settlement, followed)
        self.reports.append(report)
        self._announce(claim, report, settlement, followed)
        if report.error is not None and self.errors == "raise" and not isinstance(report.error, Verdict):
            raise report.error
        if self.retries and settlement.move is Move.RETRY:
            self.backend.operator.amend([claim.id], Amendment(now=True))

    def _store(self, settlement: Settlement) -> tuple[Followed, ...]:
        cycle = self.backend.cycle(OWNER, (settlement,))
        if cycle.refused:
            raise LeaseLost(*settlement.claim)
        return cycle.followed

    def _announce(
        self, claim: Claim, report: AttemptReport, settlement: Settlement, followed: tuple[Followed, ...]
    ) -> None:
        """Send the signals that a worker sends."""
        for progress in report.progress:
            announce.send(_event(EventKind.PROGRESSED, claim)._replace(progress=json.dumps(progress)))
        failure = settlement.failure
        announce.send(
            _event(KINDS[settlement.move], claim)._replace(
                delay=in_seconds(settlement.delay),
                reason=settlement.end_reason or (failure.ending if failure else ""),
                error_class=failure.error_class if failure else "",
                error=failure.message if failure else "",
            )
        )
        if signals.enqueued.has_listeners():
            for one in followed:
                announce.send(Event(EventKind.FOLLOWED, *one.names, worker=OWNER, error=one.refusal))


def drain(*, errors: Errors = "raise", retries: bool = True, limit: int = MOST) -> list[AttemptReport]:
    """Run the jobs that are due, and their follow-up jobs, in the order in which a worker claims them.

    Handlers run one after another in this thread and see the transaction of the test. An error of a handler is raised
    once its outcome is stored. With ``errors="collect"`` it is only kept in the report, and a job that waits for a
    retry is run again without waiting, unless ``retries`` is false. Raises AssertionError after ``limit`` attempts.
    """
    return Drain(backends.current(), errors=errors, retries=retries, limit=limit).run()


def _event(kind: EventKind, claim: Claim) -> Event:
    return Event(kind, claim.id, claim.type, claim.queue, claim.attempt, claim.max_retries, OWNER)
