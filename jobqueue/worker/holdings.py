"""What this worker holds: every claim from the cycle that brought it to the one that stores its settlement."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from jobqueue.errors import StopReason
from jobqueue.records import Claim, Settlement

if TYPE_CHECKING:
    from jobqueue.worker.member import Member

Claimed = tuple[str, int]

NEVER = float("inf")

#: How many characters of results travel in one statement; Postgres takes no object of 256 MB.
_MOST_AT_ONCE = 32 * 1024 * 1024


def margin(lease: float) -> float:
    """Say how long before its end a lease that was not renewed is given up: time enough to end what runs under it."""
    return min(5.0, lease / 5)


class Held:
    """One claim and what the worker knows of it. Moments are monotonic seconds, lengths seconds."""

    __slots__ = ("claim", "deadline", "extended", "key", "lease", "limit", "member", "reason", "since")

    def __init__(self, claim: Claim, lease: float, limit: float, since: float) -> None:
        self.claim = claim
        self.key: Claimed = (claim.id, claim.fence)
        self.lease = lease
        self.limit = limit
        self.since = since
        self.extended = since
        #: When the next step is taken against it: it is asked to stop, then its executor is ended.
        self.deadline = since + limit
        self.member: Member | None = None
        self.reason: StopReason | None = None

    @property
    def renewal(self) -> float:
        """When its lease is to be renewed."""
        return self.extended + self.lease / 3

    @property
    def ends(self) -> float:
        """When its lease is given up if it could not be renewed."""
        return self.extended + self.lease - margin(self.lease)


class Finished(NamedTuple):
    """A claim that has come to something, which waits to be stored."""

    held: Held
    settlement: Settlement


class Holdings:
    """The claims that run, and those that are finished and wait to be stored."""

    def __init__(self) -> None:
        self.running: dict[Claimed, Held] = {}
        self.finished: dict[Claimed, Finished] = {}
        #: No running claim has an earlier deadline.
        self.nearest = NEVER
        #: No claim has to be renewed before the one, and no lease is given up before the other.
        self.renewal = self.ends = NEVER

    def __len__(self) -> int:
        return len(self.running) + len(self.finished)

    def begin(self, several: Sequence[Held]) -> None:
        """Note claims that were just taken."""
        self.running.update((held.key, held) for held in several)
        self.nearest = min(self.nearest, min(held.deadline for held in several))
        soonest = min(several, key=lambda held: held.lease)  # they were taken in the same cycle
        self.renewal = min(self.renewal, soonest.renewal)
        self.ends = min(self.ends, soonest.ends)

    def begin_anew(self, held: Held, now: float) -> None:
        """Note that a claim begins to run only now: its time limit does not count while it waits in line."""
        held.since, held.deadline = now, now + held.limit
        self.nearest = min(self.nearest, held.deadline)

    def finish(self, held: Held, settlement: Settlement) -> None:
        """Note what a claim came to; it is still held, until that is stored."""
        self.running.pop(held.key, None)
        self.finished[held.key] = Finished(held, settlement)

    def offer(self) -> list[Finished]:
        """List what is to be stored next: all that is finished, but for results that are too much for one statement."""
        offered: list[Finished] = []
        size = 0
        for finished in self.finished.values():
            size += len(finished.settlement.result or "")
            if offered and size > _MOST_AT_ONCE:
                break
            offered.append(finished)
        return offered

    def stored(self, offered: Iterable[Finished]) -> None:
        """Forget what was stored, or refused."""
        for finished in offered:
            self.finished.pop(finished.held.key, None)

    def drop(self, key: Claimed) -> None:
        """Forget a claim that is lost, or settled by its own handler."""
        self.finished.pop(key, None)
        self.running.pop(key, None)

    def everything(self) -> list[Held]:
        """List what needs its lease."""
        return [*self.running.values(), *(finished.held for finished in self.finished.values())]
