"""Dead letters that failed in the same way, summed up."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from jobqueue.records.outcome import Ending

#: The stretch that ``hourly`` tells of.
HOURS = 24
HOUR = timedelta(hours=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorGroup:
    """Dead letters of one fingerprint; the empty one stands for those that have none.

    Type, error, its class and how the last attempt ended are the newest one's; ``error`` is its beginning. ``hourly``
    counts the last ``HOURS`` hours, the oldest first. Whatever is counted stops at a cap: ``capped`` says that there
    are more than ``count``, ``hourly_cap`` what an hour could show at most.
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
    """The groups that were heard of last, and whether there are others."""

    groups: tuple[ErrorGroup, ...] = ()
    more: bool = False


class Caps(NamedTuple):
    """How far to count: one group and all together, one hour of a group and all hours of all groups together."""

    group: int
    groups: int
    hour: int
    hours: int

    def shared(self, groups: int) -> tuple[int, int]:
        """How far each group and each of its hours is counted where there are so many groups."""
        group, hour = self.groups // max(1, groups), self.hours // max(1, HOURS * groups)
        return max(1, min(self.group, group)), max(1, min(self.hour, hour))
