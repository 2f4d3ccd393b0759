"""The claims of this worker, from the cycle that takes a job to the one that stores its settlement."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from jobqueue.clock import NEVER, SYSTEM
from jobqueue.errors import StopReason
from jobqueue.records import Claim, ClaimKey, Settlement

if TYPE_CHECKING:
    from jobqueue.worker.supervisor.executor_link import ExecutorLink

#: Seconds until a settlement is offered again after another session had locked its row.
POSTPONED_FOR = 1.0

#: The most characters of results in one statement. Postgres takes no value of 256 MB.
_MOST_AT_ONCE = 32 * 1024 * 1024


def margin(lease: float) -> float:
    """Return how long before its end an unrenewed lease is given up: the time needed to end its job."""
    return min(5.0, lease / 5)


def silence(lease: float) -> float:
    """Return how long a database may be silent before it is asked again over another connection.

    It is half of the time that is left when a renewal is due, so that there is time for a second try. It is at least a
    second, because a slow database isn't a dead one.
    """
    return max(1.0, (lease - lease / 3 - 2 * margin(lease)) / 2)


class HeldClaim:
    """A claim and what the worker knows about it. Moments are monotonic seconds, lengths are seconds."""

    __slots__ = ("claim", "deadline", "ended", "extended", "key", "lease", "limit", "link", "reason", "since")

    #: When its attempt ended, once it has.
    ended: float

    def __init__(self, claim: Claim, lease: float, limit: float, since: float, extended: float | None = None) -> None:
        self.claim = claim
        self.key: ClaimKey = (claim.id, claim.fence)
        self.lease = lease
        self.limit = limit
        self.since = since
        #: When its lease began: the moment it was asked for, to be safe.
        self.extended = since if extended is None else extended
        #: When the next step follows: first it is asked to stop, then its executor is killed.
        self.deadline = since + limit
        self.link: ExecutorLink | None = None
        self.reason: StopReason | None = None

    @property
    def renewal(self) -> float:
        """Return when its lease must be renewed."""
        return self.extended + self.lease / 3

    @property
    def ends(self) -> float:
        """Return when its lease is given up if it could not be renewed."""
        return self.extended + self.lease - margin(self.lease)


class PendingSettlement(NamedTuple):
    """An ended claim and the settlement that waits to be stored."""

    held: HeldClaim
    settlement: Settlement


class Claims:
    """The running claims, those whose settlement waits to be stored, and those with locked rows."""

    def __init__(self) -> None:
        self.running: dict[ClaimKey, HeldClaim] = {}
        self.finished: dict[ClaimKey, PendingSettlement] = {}
        self.postponed: dict[ClaimKey, PendingSettlement] = {}
        #: How many claims there have been.
        self.begun = 0
        #: When postponed settlements are offered again.
        self.again = NEVER
        #: A lower bound of the running claims' deadlines.
        self.nearest = NEVER
        #: Lower bounds of the moments at which claims must be renewed, and at which their leases are given up.
        self.renewal = self.ends = NEVER

    def __len__(self) -> int:
        return len(self.running) + len(self.finished) + len(self.postponed)

    def begin(self, several: Sequence[HeldClaim]) -> None:
        """Add claims that were just taken."""
        self.begun += len(several)
        self.running.update((held.key, held) for held in several)
        self.nearest = min(self.nearest, min(held.deadline for held in several))
        soonest = min(several, key=lambda held: held.lease)  # they were taken in the same cycle
        self.renewal = min(self.renewal, soonest.renewal)
        self.ends = min(self.ends, soonest.ends)

    def begin_anew(self, held: HeldClaim, now: float) -> None:
        """Restart the time limit of a claim that begins to run only now, after it waited in line."""
        held.since, held.deadline = now, now + held.limit
        self.nearest = min(self.nearest, held.deadline)

    def finish(self, held: HeldClaim, settlement: Settlement, now: float | None = None) -> None:
        """Set the settlement of a claim. It is still held until that is stored."""
        held.ended = SYSTEM.monotonic() if now is None else now
        self.running.pop(held.key, None)
        self.finished[held.key] = PendingSettlement(held, settlement)

    def offer(self, now: float | None = None) -> list[PendingSettlement]:
        """Return what to store next: all that is finished, within the limit of one statement.

        Includes postponed settlements once their time has come.
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
        """Put off settlements whose rows other sessions have locked. They are still held."""
        self.again = min(self.again, now + POSTPONED_FOR)
        for finished in several:
            self.postponed[finished.held.key] = self.finished.pop(finished.held.key)

    def stored(self, offered: Iterable[PendingSettlement]) -> None:
        """Forget claims whose settlement was stored or refused."""
        for finished in offered:
            self.finished.pop(finished.held.key, None)

    def drop(self, key: ClaimKey) -> None:
        """Forget a claim that is lost, or that its own handler has settled."""
        for some in (self.running, self.finished, self.postponed):
            some.pop(key, None)

    def everything(self) -> list[HeldClaim]:
        """Return all claims that need their lease."""
        finished = (*self.finished.values(), *self.postponed.values())
        return [*self.running.values(), *(one.held for one in finished)]
