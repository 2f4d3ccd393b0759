"""The port that groups dead letters by error."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from jobqueue.policy.fingerprint import Grouping
from jobqueue.records import (
    Caps,
    ErrorGroup,
    ErrorGroups,
    ErrorShares,
    GroupFilter,
)


class ErrorReader(ABC):
    """Groups dead letters by the fingerprint of their error."""

    @abstractmethod
    def groups(self, limit: int, caps: Caps, wanted: GroupFilter = GroupFilter()) -> ErrorGroups:  # noqa: B008 - frozen
        """Sum up at most ``limit`` groups, in the order asked for.

        Counts are exact if there are at most ``caps.groups`` dead letters. Otherwise each stops at its share. Of more
        than a thousand groups, a filter looks at the first thousand in that order.
        """

    @abstractmethod
    def group(self, fingerprint: str, caps: Caps) -> ErrorGroup | None:
        """Sum up one group. The empty fingerprint stands for the dead letters that have none."""

    @abstractmethod
    def shares(self, fingerprint: str, most: int) -> ErrorShares:
        """Count which tenants, queues, hosts and releases the newest dead letters of a group have, up to ``most``."""

    @abstractmethod
    def groupings(self, ids: Sequence[str]) -> dict[str, Grouping]:
        """Return what the current rule groups each of these dead letters by, from their stored history.

        Jobs that are not dead letters are left out.
        """

    @abstractmethod
    def outdated(self, ids: Sequence[str]) -> dict[str, str]:
        """Return the fingerprints by the current rule of those of these dead letters that have others."""
