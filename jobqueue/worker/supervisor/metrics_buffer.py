"""Metrics that this worker has counted and not yet stored: how attempts ended, how long jobs waited and ran."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from math import ceil
from typing import Any

from jobqueue.clock import SYSTEM
from jobqueue.policy.histogram import buckets
from jobqueue.policy.stretches import ALL, Name
from jobqueue.records import Claim, Expired, Lengths, Settlement, Tally
from jobqueue.states import Move
from jobqueue.worker.supervisor.claims import HeldClaim, PendingSettlement

#: How the moves that end an attempt are called in a tally.
_ENDS = {Move.COMPLETE: "completed", Move.RETRY: "retried", Move.BURY: "dead_lettered", Move.CANCEL: "stopped"}

#: What cannot be added for longer is added to a later minute, and what is of more kinds to their queue as a whole; of
#: as many queues more, only to all of them together.
MOST_MINUTES = 30
MOST_KINDS = 200
#: So many are added to the figures at a time: a thousandth of a second each, in which no job is settled.
KINDS_AT_ONCE = 25
#: So much is noted before it is counted: each queue and type has a price of its own, however few its jobs are.
_A_GOOD_DEAL = 1_000


class Line:
    """What was counted of one queue and type in one minute."""

    __slots__ = ("ends", "ran", "ran_for", "waited", "waited_for")

    def __init__(self) -> None:
        self.ends: Counter[str] = Counter()
        self.waited: Counter[int] = Counter()
        self.ran: Counter[int] = Counter()
        self.waited_for = self.ran_for = 0.0

    def take(self, other: Line) -> None:
        """Add what another line has."""
        for mine, theirs in ((self.ends, other.ends), (self.waited, other.waited), (self.ran, other.ran)):
            mine.update(theirs)  # type: ignore[arg-type]
        self.waited_for += other.waited_for
        self.ran_for += other.ran_for

    def tally(self, name: Name) -> Tally:
        """Tell what it has."""
        counted: dict[str, Any] = {**self.ends}
        waited, ran = Lengths(self.waited, self.waited_for), Lengths(self.ran, self.ran_for)
        return Tally(*name, waited=waited, ran=ran, **counted)


class MetricsBuffer:
    """Notes what happens, and counts it in batches, for a supervisor settles jobs by the ten thousand a second."""

    def __init__(self) -> None:
        self._minutes: dict[int, dict[Name, Line]] = {}
        #: From this process's monotonic clock to the database's, in seconds.
        self._offset = SYSTEM.now().timestamp() - SYSTEM.monotonic()
        #: What is noted but not counted yet, all of one minute.
        self._minute = 0
        self._noted = 0
        self._waited: defaultdict[Name, list[float]] = defaultdict(list)
        self._ran: defaultdict[tuple[str, str, Move], list[float]] = defaultdict(list)

    def set_clock(self, now: datetime) -> None:
        """Go by the clock that judges when a job is due: this machine's may be an hour off."""
        self._offset = now.timestamp() - SYSTEM.monotonic()

    # What is noted

    def began(self, claims: Sequence[Claim], now: float) -> None:
        """Note how long jobs waited that are claimed now, from the moment they were due."""
        self._turn_to(now)
        claimed, waited = now + self._offset, self._waited
        for claim in claims:
            waited[claim.queue, claim.type].append(claimed - claim.scheduled_at.timestamp())
        self._noted += len(claims)

    def settled(self, stored: Sequence[PendingSettlement]) -> None:
        """Note how attempts ended, and how long they ran, whose settlements were stored now."""
        self._turn_to(SYSTEM.monotonic())
        ran = self._ran
        for held, settlement in stored:
            claim = held.claim
            ran[claim.queue, claim.type, settlement.move].append(held.ended - held.since)
        self._noted += len(stored)

    def completed(self, held: HeldClaim) -> None:
        """Note a completion that the handler's own transaction has stored."""
        held.ended = SYSTEM.monotonic()
        self.settled([PendingSettlement(held, Settlement(*held.key, held.claim.owner, Move.COMPLETE))])

    def swept(self, several: Iterable[tuple[Expired, Settlement]]) -> None:
        """Count leases that ran out: who sweeps them does so, for who held them is dead, or does not know."""
        self._turn_to(SYSTEM.monotonic())
        for expired, settlement in several:
            end = _ENDS[Move.BURY] if settlement.move is Move.BURY else "lost"
            self._line((expired.queue, expired.type)).ends[end] += 1

    # What becomes of it

    @property
    def pages(self) -> int:
        """How many pages are to be added to the figures."""
        self._count()
        return sum(ceil(len(lines) / KINDS_AT_ONCE) for lines in self._minutes.values())

    def next_page(self) -> tuple[datetime, list[Tally]] | None:
        """Tell what is to be added next: some of what was counted in the oldest minute."""
        self._count()
        if not self._minutes:
            return None
        minute = min(self._minutes)
        several = list(self._minutes[minute].items())[:KINDS_AT_ONCE]
        return datetime.fromtimestamp(60 * minute, UTC), [line.tally(name) for name, line in several]

    def forget(self, moment: datetime, tallies: Sequence[Tally]) -> None:
        """Forget what is added to the figures."""
        minute = int(moment.timestamp() // 60)
        lines = self._minutes[minute]
        for one in tallies:
            del lines[one.queue, one.type]
        if not lines:
            del self._minutes[minute]

    @property
    def is_empty(self) -> bool:
        """Whether all that was noted is added to the figures."""
        return not (self._minutes or self._noted)

    def _turn_to(self, now: float) -> None:
        """Count what was noted in another minute, or is a good deal."""
        minute = int((now + self._offset) // 60)
        if minute != self._minute or self._noted >= _A_GOOD_DEAL:
            self._count()
            self._minute = minute

    def _count(self) -> None:
        for name, seconds in self._waited.items():
            line = self._line(name)
            line.waited.update(buckets(seconds))
            # A producer's clock may be ahead of the one that judges.
            line.waited_for += sum(seconds) if min(seconds) >= 0 else sum(max(0.0, one) for one in seconds)
        for (queue, kind, move), seconds in self._ran.items():
            if move in _ENDS:
                line = self._line((queue, kind))
                line.ends[_ENDS[move]] += len(seconds)
                line.ran.update(buckets(seconds))
                line.ran_for += sum(seconds)
        self._waited.clear()
        self._ran.clear()
        self._noted = 0

    def _line(self, name: Name) -> Line:
        """Find the line of a queue and type in the present minute."""
        if self._minute not in self._minutes:
            self._minutes[self._minute] = {}
            if len(self._minutes) > MOST_MINUTES:
                self._put_off()
        return _line_of(self._minutes[self._minute], name)

    def _put_off(self) -> None:
        """Add what was counted in the oldest minute to the next one; the present one may be older, by a new clock."""
        oldest, next_one, *_ = sorted(self._minutes.keys() - {self._minute})
        for name, line in self._minutes.pop(oldest).items():
            _line_of(self._minutes[next_one], name).take(line)


def _line_of(lines: dict[Name, Line], name: Name) -> Line:
    if name not in lines:
        if len(lines) >= MOST_KINDS:
            name = (name[0], "")
        if name not in lines and len(lines) >= 2 * MOST_KINDS:
            name = ALL
        lines.setdefault(name, Line())
    return lines[name]
