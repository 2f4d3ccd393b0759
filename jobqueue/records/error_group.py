"""Groups of dead letters that failed in the same way."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

from jobqueue.records.outcome import Ending

#: The length of ``hourly``.
HOURS = 24
HOUR = timedelta(hours=1)


class SeenIn(NamedTuple):
    """A release of the application, and when its first dead letter with an error was given up."""

    release: str
    first_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorGroup:
    """Dead letters with the same fingerprint. The empty fingerprint stands for dead letters without a fingerprint.

    Type, error, error class and ending are those of the newest dead letter; ``error`` is cut off. ``first_at`` also
    counts dead letters that were retried or purged since. ``releases`` are those that had the error, the latest last.
    ``hourly`` has the counts of the last ``HOURS`` hours, the oldest first. Counts stop at a cap: ``capped`` means that
    there are more than ``count``, and ``hourly_cap`` is the cap of an hour.
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
    retried_at: datetime | None = None
    releases: tuple[SeenIn, ...] = ()

    @property
    def came_back(self) -> bool:
        """Return whether a job was given up with this error after the last retry of such jobs."""
        return self.retried_at is not None and self.last_at is not None and self.last_at > self.retried_at


class ErrorGroups(NamedTuple):
    """Groups in the order asked for, and whether there are others."""

    groups: tuple[ErrorGroup, ...] = ()
    more: bool = False


class GroupOrder(StrEnum):
    """The orders of groups: by the latest failure, by the first failure, both latest first, or by number."""

    LATEST = "latest"
    NEWEST = "newest"
    LARGEST = "largest"


class GroupFilter(NamedTuple):
    """Which groups are meant, and in which order. Type and text are those of a group's newest dead letter.

    The text is sought in class and message, in upper or lower case.
    """

    type: str = ""
    text: str = ""
    order: GroupOrder = GroupOrder.LATEST

    @property
    def is_narrow(self) -> bool:
        """Return whether it leaves any group out."""
        return bool(self.type or self.text)

    def matches(self, job_type: str, error_class: str, error: str) -> bool:
        """Return whether a group with such a newest dead letter is meant."""
        return self.type in ("", job_type) and self.text.lower() in f"{error_class}\n{error}".lower()


def host_of(owner: str | None) -> str:
    """Return the host in a worker's name, which ends with its process id and a nonce."""
    return (owner or "").rsplit(":", 2)[0]


class Caps(NamedTuple):
    """The limits of counting: for a group, all groups, an hour of a group, and all hours of all groups.

    Counts are exact as long as there are at most ``groups`` dead letters.
    """

    group: int
    groups: int
    hour: int
    hours: int

    def shared(self, groups: int) -> tuple[int, int]:
        """Return the limits for each group and each of its hours if there are so many groups."""
        group, hour = self.groups // max(1, groups), self.hours // max(1, HOURS * groups)
        return max(1, min(self.group, group)), max(1, min(self.hour, hour))


class ErrorShare(NamedTuple):
    """How many of some dead letters have a name in common. An empty name means that they have none."""

    name: str
    number: int


class ErrorShares(NamedTuple):
    """What the newest dead letters of a group, ``of`` in number, have in common. The largest shares come first.

    ``is_all`` says that the group has no others. Hosts and releases are those of the last attempts.
    """

    of: int = 0
    is_all: bool = True
    tenants: tuple[ErrorShare, ...] = ()
    queues: tuple[ErrorShare, ...] = ()
    hosts: tuple[ErrorShare, ...] = ()
    releases: tuple[ErrorShare, ...] = ()
