"""The metrics that this worker has counted but not yet stored: ends of attempts, waiting times and run times."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from math import ceil
from typing import Any

from jobqueue.clock import SYSTEM
from jobqueue.policy.histogram import buckets
from jobqueue.policy.stretches import ALL, Name
from jobqueue.records import Claim, Lengths, OverdueLease, Settlement, Tally
from jobqueue.records.metric import MOST_ATTEMPTS
from jobqueue.states import Move
from jobqueue.worker.supervisor.claims import HeldClaim, PendingSettlement

#: The fields of a tally, by the move that ends an attempt.
_ENDS = {Move.COMPLETE: "completed", Move.RETRY: "retried", Move.BURY: "dead_lettered", Move.CANCEL: "stopped"}

#: The moves after which a job makes no further attempt.
_LAST = {Move.COMPLETE, Move.BURY, Move.CANCEL}

#: The bounds of the buffer. Older minutes are merged into later ones; more types are counted with their queue as a
#: whole, and as many more queues with all of them.
MOST_MINUTES = 30
MOST_KINDS = 200
#: How many tallies are stored at a time. Each takes about a millisecond, in which no job is settled.
KINDS_AT_ONCE = 25
#: How many notes are collected before they are counted, because each queue and type has a fixed cost.
_COUNT_AFTER = 1_000


class Line:
    """The counts of one queue and type in one minute."""

    __slots__ = ("attempts", "attempts_sum", "ends", "ran", "ran_for", "waited", "waited_for")

    def __init__(self) -> None:
        self.ends: Counter[str] = Counter()
        self.attempts: Counter[int] = Counter()
        self.attempts_sum = 0
        self.waited: Counter[int] = Counter()
        self.ran: Counter[int] = Counter()
        self.waited_for = self.ran_for = 0.0

    def take(self, other: Line) -> None:
        """Add the counts of another line."""
        self.ends.update(other.ends)
        for mine, theirs in (
            (self.waited, other.waited),
            (self.ran, other.ran),
            (self.attempts, other.attempts),
        ):
            mine.update(theirs)
        self.attempts_sum += other.attempts_sum
        self.waited_for += other.waited_for
        self.ran_for += other.ran_for

    def tally(self, name: Name) -> Tally:
        """Return the counts as a tally."""
        counted: dict[str, Any] = {**self.ends}
        waited, ran = Lengths(self.waited, self.waited_for), Lengths(self.ran, self.ran_for)
        return Tally(*name, waited=waited, ran=ran, attempts=Lengths(self.attempts, self.attempts_sum), **counted)

    def count_last(self, attempt: int, number: int = 1) -> None:
        """Count jobs that ended with this attempt. Other programs may have stored any number."""
        self.attempts[min(max(attempt, 0), MOST_ATTEMPTS)] += number
        self.attempts_sum += attempt * number


class MetricsBuffer:
    """Collects notes and counts them in batches, because a supervisor settles up to ten thousand jobs a second."""

    def __init__(self) -> None:
        self._minutes: dict[int, dict[Name, Line]] = {}
        #: The offset from this process's monotonic clock to the database's clock, in seconds.
        self._offset = SYSTEM.now().timestamp() - SYSTEM.monotonic()
        #: Notes that are not counted yet, all of one minute.
        self._minute = 0
        self._noted = 0
        self._waited: defaultdict[Name, list[float]] = defaultdict(list)
        self._ran: defaultdict[tuple[str, str, Move, int], list[float]] = defaultdict(list)

    def set_clock(self, now: datetime) -> None:
        """Use the database's clock, which decides when a job is due. This machine's clock may differ."""
        self._offset = now.timestamp() - SYSTEM.monotonic()

    # Notes

    def began(self, claims: Sequence[Claim], now: float) -> None:
        """Note how long the claimed jobs waited since they were due."""
        self._turn_to(now)
        claimed, waited = now + self._offset, self._waited
        for claim in claims:
            waited[claim.queue, claim.type].append(claimed - claim.scheduled_at.timestamp())
        self._noted += len(claims)

    def settled(self, stored: Sequence[PendingSettlement]) -> None:
        """Note how the attempts with stored settlements ended, and how long they ran."""
        self._turn_to(SYSTEM.monotonic())
        ran = self._ran
        for held, settlement in stored:
            claim = held.claim
            ran[claim.queue, claim.type, settlement.move, claim.attempt].append(held.ended - held.since)
        self._noted += len(stored)

    def completed(self, held: HeldClaim) -> None:
        """Note a completion that the handler's own transaction has stored."""
        held.ended = SYSTEM.monotonic()
        self.settled([PendingSettlement(held, Settlement(*held.key, held.claim.owner, Move.COMPLETE))])

    def swept(self, several: Iterable[tuple[OverdueLease, Settlement]]) -> None:
        """Count claims that lost their worker. The one that ends them does so: the holder is dead or doesn't know."""
        self._turn_to(SYSTEM.monotonic())
        for overdue, settlement in several:
            line = self._line((overdue.queue, overdue.type))
            line.ends[_ENDS[Move.BURY] if settlement.move is Move.BURY else "lost"] += 1
            if settlement.move is Move.BURY:
                line.count_last(overdue.attempt)

    # Counts

    @property
    def pages(self) -> int:
        """Return how many pages wait to be stored."""
        self._count()
        return sum(ceil(len(lines) / KINDS_AT_ONCE) for lines in self._minutes.values())

    def next_page(self) -> tuple[datetime, list[Tally]] | None:
        """Return the next tallies to store, of the oldest minute."""
        self._count()
        if not self._minutes:
            return None
        minute = min(self._minutes)
        several = list(self._minutes[minute].items())[:KINDS_AT_ONCE]
        return datetime.fromtimestamp(60 * minute, UTC), [line.tally(name) for name, line in several]

    def forget(self, moment: datetime, tallies: Sequence[Tally]) -> None:
        """Remove tallies that were stored."""
        minute = int(moment.timestamp() // 60)
        lines = self._minutes[minute]
        for one in tallies:
            del lines[one.queue, one.type]
        if not lines:
            del self._minutes[minute]

    @property
    def is_empty(self) -> bool:
        """Return whether all notes are stored."""
        return not (self._minutes or self._noted)

    def _turn_to(self, now: float) -> None:
        """Count the notes if there are many, or if another minute has begun."""
        minute = int((now + self._offset) // 60)
        if minute != self._minute or self._noted >= _COUNT_AFTER:
            self._count()
            self._minute = minute

    def _count(self) -> None:
        for name, seconds in self._waited.items():
            line = self._line(name)
            line.waited.update(buckets(seconds))
            # A producer's clock may be ahead of the database's.
            line.waited_for += sum(seconds) if min(seconds) >= 0 else sum(max(0.0, one) for one in seconds)
        for (queue, kind, move, attempt), seconds in self._ran.items():
            if move in _ENDS:
                line = self._line((queue, kind))
                line.ends[_ENDS[move]] += len(seconds)
                line.ran.update(buckets(seconds))
                line.ran_for += sum(seconds)
                if move in _LAST:
                    line.count_last(attempt, len(seconds))
        self._waited.clear()
        self._ran.clear()
        self._noted = 0

    def _line(self, name: Name) -> Line:
        """Return the line of a queue and type in the current minute."""
        if self._minute not in self._minutes:
            self._minutes[self._minute] = {}
            if len(self._minutes) > MOST_MINUTES:
                self._put_off()
        return _line_of(self._minutes[self._minute], name)

    def _put_off(self) -> None:
        """Merge the oldest minute into the next one. After a change of the clock, the current minute may be older."""
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
