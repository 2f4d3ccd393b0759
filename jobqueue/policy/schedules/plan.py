"""The plan of a schedule at one moment: which slots become jobs, and when to look again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from itertools import islice, takewhile

from jobqueue.policy.schedules.rule import Rule
from jobqueue.records.schedule import Missed, Overlap, ScheduleRecord

#: A slot later than this is missed. A worker that takes over from a dead one is quicker.
ON_TIME = timedelta(seconds=10)
#: The lengths of time, back from now, in which the newest slots are sought, so that not all are listed.
_SPANS = tuple(timedelta(seconds=seconds) for seconds in (60, 3_600, 86_400, 40 * 86_400, 500 * 86_400))
#: No slot is later, because a moment must exist in every time zone.
_LAST = datetime(9999, 12, 28, tzinfo=UTC)


@dataclass(frozen=True)
class Plan:
    """The slots that become jobs, in order; the last one that is dealt with; the next one; the newest dropped one."""

    slots: tuple[datetime, ...]
    last_slot_at: datetime
    next_at: datetime | None
    missed_at: datetime | None = None


def plan(schedule: ScheduleRecord, rule: Rule, now: datetime) -> Plan:
    """Decide what happens to the slots since the last one. Depends on nothing but the schedule and the moment."""
    last = schedule.last_slot_at
    until = now if schedule.end_at is None else min(now, schedule.end_at)
    late = max(last, min(until, now - ON_TIME))
    missed = _kept_of_missed(schedule, rule, last, late)
    slots = (*missed, *takewhile(lambda slot: slot <= until, rule.after(late)))
    if schedule.overlap is Overlap.QUEUE:
        slots = slots[-1:] or tuple(newest(rule, last, late, 1))
    if schedule.max_runs is not None:
        slots = slots[: max(0, schedule.max_runs - schedule.runs)]
    dropped = next(iter(newest(rule, last, late, 1)), None) if late > last and not missed else None
    seen = max([last, *slots, *([dropped] if dropped else [])])
    return Plan(slots, seen, next_slot(schedule, rule, seen, len(slots)), dropped)


def _kept_of_missed(schedule: ScheduleRecord, rule: Rule, last: datetime, late: datetime) -> list[datetime]:
    """Return the missed slots that still become jobs."""
    if late <= last or schedule.missed is Missed.SKIP:
        return []
    return newest(rule, last, late, 1 if schedule.missed is Missed.ONCE else schedule.missed_cap)


def newest(rule: Rule, after: datetime, until: datetime, most: int) -> list[datetime]:
    """Return the newest slots in a stretch of time, in order, without listing all of a long one."""
    found: list[datetime] = []
    for span in _SPANS:
        since = max(after, until - span)
        found = list(takewhile(lambda slot: slot <= until, rule.after(since)))
        if len(found) >= most or since == after:
            return found[-most:]
    return list(islice(takewhile(lambda slot: slot <= until, rule.after(after)), 100_000))[-most:] or found


def next_slot(schedule: ScheduleRecord, rule: Rule, after: datetime, runs: int = 0) -> datetime | None:
    """Return the next slot, or ``None`` if the schedule has ended."""
    if schedule.max_runs is not None and schedule.runs + runs >= schedule.max_runs:
        return None
    return next(upcoming(schedule, rule, after), None)


def upcoming(schedule: ScheduleRecord, rule: Rule, after: datetime) -> Iterator[datetime]:
    """Yield the slots after a moment, up to the schedule's end, or the end of the moments that databases store."""
    end = _LAST if schedule.end_at is None else min(schedule.end_at, _LAST)
    return takewhile(lambda slot: slot <= end, rule.after(after)) if after < end else iter(())


def delay_of(schedule: ScheduleRecord) -> timedelta:
    """Return the delay of a schedule's jobs: a part of its jitter, which is always the same."""
    share = int.from_bytes(blake2b(schedule.id.encode(), digest_size=4).digest(), "big") / 2**32
    return schedule.jitter * share
