"""The alerts: an evaluation of the queue's health every few minutes, and a look at critical types in between."""

from __future__ import annotations

import logging
from datetime import timedelta

from jobqueue.alert_settings import alert_settings, are_on
from jobqueue.alerts.evaluation import Evaluation, evaluate, evaluate_critical
from jobqueue.alerts.sights import has_critical_types
from jobqueue.clock import SYSTEM
from jobqueue.records.alert import News
from jobqueue.worker.supervisor.context import WorkerContext
from jobqueue.worker.supervisor.duties.duty import Duty

logger = logging.getLogger("jobqueue")

#: The seconds between two looks at the dead letters of critical types.
LOOK_FOR_CRITICAL = 3.0
#: The seconds between two times that old alerts are deleted.
PRUNE_EVERY = 3_600.0


class Alerts(Duty):
    """Evaluates, stores what changed, and enqueues what tells of it. Without the setting ``ALERTS`` it is not done."""

    name = "alerts"
    every = 300.0
    is_elected = True

    def __init__(self, context: WorkerContext) -> None:
        super().__init__(context)
        self._evaluate_at = self._prune_at = 0.0
        self._every = timedelta(seconds=self.every)
        if self.is_wanted:
            self._every = alert_settings().every
            self._looks = has_critical_types()
            # The most that a turn is ahead of another.
            self.every = min(self._every.total_seconds(), LOOK_FOR_CRITICAL if self._looks else float("inf"))

    @property
    def is_wanted(self) -> bool:
        return are_on()

    def act(self) -> float | None:
        """Evaluate what is due. Return the seconds to the next look."""
        now = SYSTEM.monotonic()
        if now >= self._evaluate_at:
            done = evaluate(self.context.backend)
            next_look = self._every if done.next_look is None else min(done.next_look, self._every)
            self._evaluate_at = now + next_look.total_seconds()
            _log(done)
            self._prune(now)
        elif self._looks:
            done = evaluate_critical(self.context.backend)
            _log(done)
        return max(0.0, self._evaluate_at - SYSTEM.monotonic())

    def _prune(self, now: float) -> None:
        if now >= self._prune_at:
            self.context.backend.alerts.prune(alert_settings().keep)
            self._prune_at = now + PRUNE_EVERY


def _log(done: Evaluation) -> None:
    fired, resolved = done.count(News.FIRED), done.count(News.RESOLVED)
    if fired or resolved:
        logger.info("Alerts: %d fired, %d resolved", fired, resolved)
