"""What a search for jobs found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple, Protocol


class Ids(Protocol):
    """Ids in order: a list, or a source that reads one slice at a time."""

    def __getitem__(self, part: slice, /) -> Sequence[str]: ...


@dataclass(frozen=True, slots=True)
class Matches:
    """The ids of the jobs that a search found, in order, as a paginator takes them.

    ``found`` is their number, up to one more than ``cap``. ``searched`` is the number of jobs that were searched,
    matches or not. ``is_part`` says that other jobs may match as well: only those back to the id ``edge`` were
    searched, which was created at ``back_to``.
    """

    ids: Ids
    found: int
    cap: int
    searched: int
    is_part: bool = False
    back_to: datetime | None = None
    edge: str | None = None

    def __len__(self) -> int:
        return min(self.found, self.cap)

    def __getitem__(self, part: slice) -> list[str]:
        start, stop, _step = part.indices(len(self))
        return list(self.ids[start : max(start, stop)])

    @property
    def more(self) -> bool:
        """Return whether there are more matches than the cap."""
        return self.found > self.cap

    @property
    def rest_before(self) -> str | None:
        """Return where to go on: only jobs with lesser ids may be further matches. For the newest first."""
        return self[len(self) - 1 : len(self)][0] if self.more else self.edge


class Step(NamedTuple):
    """The matches in a part of the table, and the id after which the next part begins; ``None`` at the end."""

    ids: tuple[str, ...]
    last: str | None


class MatchCount(NamedTuple):
    """The number of matches up to a cap, whether there are more, and whether only a part of the jobs was searched."""

    found: int
    more: bool
    is_part: bool
