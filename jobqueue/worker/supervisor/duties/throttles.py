"""The deletion of throttles whose time has passed."""

from __future__ import annotations

from jobqueue.worker.supervisor.duties.duty import Duty


class PastThrottles(Duty):
    """Deletes throttles that no longer hold anything back."""

    name = "past throttles"
    every = 60.0
    is_elected = True

    def act(self) -> None:
        """Delete some."""
        self.context.backend.forget_throttles()
