"""Groups of dead letters that failed in the same way."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from jobqueue.records.outcome import Ending

#: The length of ``hourly``.
HOURS = 24
HOUR = timedelta(hours=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorGroup:
    """Dead letters with the same fingerprint. The empty fingerprint stands for those without one.

    Type, error, error class and ending are those of the newest dead letter; ``error`` is cut off. ``hourly`` has the
    counts of the last ``HOURS`` hours, the oldest first. Counts stop at a cap: ``capped`` means that there are more
    than ``count``, and ``hourly_cap`` is the cap of an hour.
    """

    fingerprint: str
    newest_id: str
    type: str
    error: str
    error_class: str
    ending: Ending | None
    count: int
    capped: bool
    first_at: datetime | None
    last_at: datetime | None
    hourly: tuple[int, ...]
    hourly_cap: int


class ErrorGroups(NamedTuple):
    """The groups with the latest failures, and whether there are others."""

    groups: tuple[ErrorGroup, ...] = ()
    more: bool = False


class Caps(NamedTuple):
    """The limits of counting: for a group, all groups, an hour of a group, and all hours of all groups."""

    group: int
    groups: int
    hour: int
    hours: int

    def shared(self, groups: int) -> tuple[int, int]:
        """Return the limits for each group and each of its hours if there are so many groups."""
        group, hour = self.groups // max(1, groups), self.hours // max(1, HOURS * groups)
        return max(1, min(self.group, group)), max(1, min(self.hour, hour))
