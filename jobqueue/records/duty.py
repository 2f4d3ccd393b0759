"""Duties that one worker does for all, and who did them last."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

#: How long a duty is reserved for the worker that has begun it. A worker that dies or freezes meanwhile is replaced.
TURN = timedelta(seconds=8)
#: How long after the due moment the other workers leave the next turn to the worker that did the last one.
PRECEDENCE = timedelta(seconds=5)


@dataclass(frozen=True, slots=True, kw_only=True)
class DutyRecord:
    """A duty: who did it last, and when it is due again.

    Until ``held_until``, other workers leave it to ``owner``. ``seconds`` is how long the last turn took, and
    ``failure`` the error that ended it, empty if it succeeded. ``failing_since`` is when its first failure in a row
    was stored.
    """

    name: str
    owner: str
    due_at: datetime
    held_until: datetime
    ran_at: datetime | None = None
    seconds: float = 0.0
    failure: str = ""
    failing_since: datetime | None = None

    def wait(self, owner: str, now: datetime, every: timedelta) -> timedelta:
        """Return how long a worker has to wait for its turn. Moments that no worker can have stored don't count."""
        due = _ahead(self.due_at, now, every)
        held = timedelta(0) if self.owner == owner else _ahead(self.held_until, now, longest_hold(every))
        return max(due, held)


def longest_hold(every: timedelta) -> timedelta:
    """Return how far ahead a worker can have reserved a duty."""
    return max(TURN, every + PRECEDENCE)


def _ahead(moment: datetime, now: datetime, most: timedelta) -> timedelta:
    ahead = moment - now
    return ahead if timedelta(0) < ahead <= most else timedelta(0)
