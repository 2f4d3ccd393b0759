"""The schedules: at start, those of the code are stored; then each due slot gets its job."""

from __future__ import annotations

from jobqueue.records.schedule import DueSchedules
from jobqueue.schedules.firing import fire_due
from jobqueue.schedules.sync import sync
from jobqueue.worker.supervisor.context import WorkerContext
from jobqueue.worker.supervisor.duties.duty import Duty

#: The seconds until a worker notices schedules in a table that had none.
LOOK_IF_NONE = 5.0
#: A worker fires so many schedules at once, and then attends to its other parts.
BATCH = 200


class DueSlots(Duty):
    """Fires due slots.

    All workers do this, without an election, so that a slot waits for none that died. Of those that fire the same slot,
    the database lets one win.
    """

    name = "schedules"
    #: The seconds until a worker notices that a schedule was made or changed.
    every = 1.0

    def __init__(self, context: WorkerContext) -> None:
        super().__init__(context)
        self._is_synced = False

    def act(self) -> float | None:
        """Fire what is due. Return the seconds to the next slot, at most ``every``."""
        backend = self.context.backend
        if self.context.stopping:
            return None
        if not self._is_synced:
            sync(backend)
            self._is_synced = True
        due, stored = fire_due(backend, BATCH)
        if stored:
            backend.wake(_age(due))
        if due.is_partial and stored:
            return 0.0
        if due.next_at is None:
            return LOOK_IF_NONE if not due.schedules else None
        return min(self.every, (due.next_at - due.now).total_seconds() + 0.001)


def _age(due: DueSchedules) -> float:
    """Return how many seconds ago the first of the slots was due."""
    return max((due.now - one.next_at).total_seconds() for one in due.schedules if one.next_at is not None)
