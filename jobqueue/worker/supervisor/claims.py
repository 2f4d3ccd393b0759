"""The claims this worker holds, from the cycle that takes a job to the one that stores its settlement."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from jobqueue.clock import NEVER, SYSTEM
from jobqueue.errors import StopReason
from jobqueue.records import Claim, ClaimKey, Settlement

if TYPE_CHECKING:
    from jobqueue.worker.supervisor.executor_link import ExecutorLink

#: For how many seconds a settlement is left alone whose row others have locked.
POSTPONED_FOR = 1.0

#: How many characters of results travel in one statement; Postgres takes no object of 256 MB.
_MOST_AT_ONCE = 32 * 1024 * 1024


def margin(lease: float) -> float:
    """Say how long before its end a lease that was not renewed is given up: time enough to end what runs under it."""
    return min(5.0, lease / 5)


def silence(lease: float) -> float:
    """Say how long a database may be silent before it is asked anew over another connection.

    It is half of what is left to a renewal that is due, so that there is time to try once more; and never less than a
    second, for slow is not dead.
    """
    return max(1.0, (lease - lease / 3 - 2 * margin(lease)) / 2)


class HeldClaim:
    """One claim and what the worker knows of it. Moments are monotonic seconds, lengths seconds."""

    __slots__ = ("claim", "deadline", "ended", "extended", "key", "lease", "limit", "link", "reason", "since")

    #: When it came to something, once it has.
    ended: float

    def __init__(self, claim: Claim, lease: float, limit: float, since: float, extended: float | None = None) -> None:
        self.claim = claim
        self.key: ClaimKey = (claim.id, claim.fence)
        self.lease = lease
        self.limit = limit
        self.since = since
        #: When its lease began: at the latest when it was asked for.
        self.extended = since if extended is None else extended
        #: When the next step is taken against it: it is asked to stop, then its executor is ended.
        self.deadline = since + limit
        self.link: ExecutorLink | None = None
        self.reason: StopReason | None = None

    @property
    def renewal(self) -> float:
        """When its lease is to be renewed."""
        return self.extended + self.lease / 3

    @property
    def ends(self) -> float:
        """When its lease is given up if it could not be renewed."""
        return self.extended + self.lease - margin(self.lease)


class PendingSettlement(NamedTuple):
    """A claim that has come to something, which waits to be stored."""

    held: HeldClaim
    settlement: Settlement


class Claims:
    """The claims that run, those that are finished and wait to be stored, and those whose rows others have locked."""

    def __init__(self) -> None:
        self.running: dict[ClaimKey, HeldClaim] = {}
        self.finished: dict[ClaimKey, PendingSettlement] = {}
        self.postponed: dict[ClaimKey, PendingSettlement] = {}
        #: How many there have been.
        self.begun = 0
        #: When those that were postponed are offered again.
        self.again = NEVER
        #: No running claim has an earlier deadline.
        self.nearest = NEVER
        #: No claim has to be renewed before the one, and no lease is given up before the other.
        self.renewal = self.ends = NEVER

    def __len__(self) -> int:
        return len(self.running) + len(self.finished) + len(self.postponed)

    def begin(self, several: Sequence[HeldClaim]) -> None:
        """Note claims that were just taken."""
        self.begun += len(several)
        self.running.update((held.key, held) for held in several)
        self.nearest = min(self.nearest, min(held.deadline for held in several))
        soonest = min(several, key=lambda held: held.lease)  # they were taken in the same cycle
        self.renewal = min(self.renewal, soonest.renewal)
        self.ends = min(self.ends, soonest.ends)

    def begin_anew(self, held: HeldClaim, now: float) -> None:
        """Note that a claim begins to run only now: its time limit does not count while it waits in line."""
        held.since, held.deadline = now, now + held.limit
        self.nearest = min(self.nearest, held.deadline)

    def finish(self, held: HeldClaim, settlement: Settlement, now: float | None = None) -> None:
        """Note what a claim came to, as of now; it is still held, until that is stored."""
        held.ended = SYSTEM.monotonic() if now is None else now
        self.running.pop(held.key, None)
        self.finished[held.key] = PendingSettlement(held, settlement)

    def offer(self, now: float | None = None) -> list[PendingSettlement]:
        """List what is to be stored next: all that is finished, but for results that are too much for one statement.

        What was postponed is among it again once its time has come.
        """
        if self.postponed and (SYSTEM.monotonic() if now is None else now) >= self.again:
            self.finished.update(self.postponed)
            self.postponed.clear()
            self.again = NEVER
        offered: list[PendingSettlement] = []
        size = 0
        for finished in self.finished.values():
            size += len(finished.settlement.result or "")
            if offered and size > _MOST_AT_ONCE:
                break
            offered.append(finished)
        return offered

    def postpone(self, several: Iterable[PendingSettlement], now: float) -> None:
        """Note that others have locked the rows of what was offered: it is still held, and offered again in a while."""
        self.again = min(self.again, now + POSTPONED_FOR)
        for finished in several:
            self.postponed[finished.held.key] = self.finished.pop(finished.held.key)

    def stored(self, offered: Iterable[PendingSettlement]) -> None:
        """Forget what was stored, or refused."""
        for finished in offered:
            self.finished.pop(finished.held.key, None)

    def drop(self, key: ClaimKey) -> None:
        """Forget a claim that is lost, or settled by its own handler."""
        for some in (self.running, self.finished, self.postponed):
            some.pop(key, None)

    def everything(self) -> list[HeldClaim]:
        """List what needs its lease."""
        finished = (*self.finished.values(), *self.postponed.values())
        return [*self.running.values(), *(one.held for one in finished)]
