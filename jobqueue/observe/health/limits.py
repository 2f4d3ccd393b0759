"""Findings about limits: those that keep due jobs from starting for long."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from jobqueue.backends.base import Backend
from jobqueue.observe.health.failures import PAST
from jobqueue.observe.health.finding import Cause, Finding, Level, Place, WithheldJobs
from jobqueue.observe.health.flow import STALLED_FOR
from jobqueue.observe.health.reading import Reading
from jobqueue.observe.health.thresholds import LASTING
from jobqueue.observe.limits import limits_in_force
from jobqueue.policy.limits.uses import accounts_of
from jobqueue.records import Depth

#: Jobs that hold a limit for so many times as long as usual are stuck.
TIMES_USUAL = 5
#: Jobs that a limit has kept waiting for this long are mentioned.
OLD = timedelta(hours=1)
#: A rate whose next start is further away than this lets nothing through for long.
FAR = timedelta(hours=1)
#: A limit that was set this long ago, and still keeps jobs waiting, is forgotten.
FORGOTTEN_AFTER = timedelta(days=1)
#: Of how many queues and types with a backlog the limits are read.
_SAMPLED = 20


def withheld_jobs(backend: Backend, depths: Sequence[Depth], now: datetime) -> list[WithheldJobs]:
    """Read which used-up limits keep jobs waiting that have been due for long. Without such jobs, read nothing."""
    late = [row for row in depths if row.oldest_due_at and now - row.oldest_due_at >= LASTING and not row.paused]
    if not late:
        return []
    book, stored = limits_in_force(backend)
    late = [row for row in late if book.of(row.queue, row.type)]
    longest = sorted(late, key=lambda row: row.oldest_due_at or now)[:_SAMPLED]
    firsts = {(row.queue, row.type): backend.limits.first_due(row.queue, row.type) for row in longest}
    kinds = {(*pair, keys): since for pair, first in firsts.items() for keys, since in reversed(first)}
    used_up = {(one.limit.place, one.value): one for one in backend.limits.uses_of(book, kinds) if one.is_used_up}
    found: dict[tuple[str, str, str, str], WithheldJobs] = {}
    for (queue, kind, keys), since in kinds.items():
        for account in accounts_of(book, [(queue, kind, keys)]).keys() & used_up.keys():
            use = used_up[account]
            known = found.get((queue, kind, *account))
            if now - since >= LASTING and (known is None or since < known.since):
                found[queue, kind, *account] = WithheldJobs(queue, kind, since, use, stored.get(use.limit.place))
    return sorted(found.values(), key=lambda one: (one.since, one.queue, one.type))


def limit_used_up(seen: Reading) -> Iterator[Finding]:
    """Find the limits that keep jobs waiting for long: held by jobs that hang, forgotten, or just low."""
    named = set()
    for one in seen.withheld:
        account = one.use.limit.place, one.use.value
        level = _level(one, seen)
        is_late = seen.now - one.since >= STALLED_FOR
        if level is Level.OK or account in named or not (is_late and seen.alive):
            continue
        named.add(account)
        pairs = {(each.queue, each.type) for each in seen.withheld if each.use == one.use}
        rows = [row for row in seen.depths if (row.queue, row.type) in pairs]
        yield Finding(
            level=level,
            cause=Cause.LIMIT_USED_UP,
            place=Place.RUNNING_JOBS if is_stuck(one, seen) else Place.QUEUES,
            queues=tuple(dict.fromkeys(row.queue for row in rows)),
            types=tuple(dict.fromkeys(row.type for row in rows)),
            jobs=sum(row.queued for row in rows),
            due=sum(row.due for row in rows),
            is_capped=any(row.capped for row in rows),
            since=one.use.since if is_stuck(one, seen) else one.since,
            scope=account,
            reason="" if one.stored is None else one.stored.reason,
            limit=one,
        )


def is_stuck(one: WithheldJobs, seen: Reading) -> bool:
    """Return whether the same jobs have held a limit for long, and for much longer than such jobs usually run."""
    past = seen.attempts.get(PAST, {}).get(one.type)
    usual = timedelta(seconds=past.ran_for / past.ran) if past and past.ran > 0 and past.ran_for > 0 else timedelta(0)
    held = timedelta(0) if one.use.since is None else seen.now - one.use.since
    return held >= max(STALLED_FOR, TIMES_USUAL * min(usual, OLD))


def _level(one: WithheldJobs, seen: Reading) -> Level:
    is_far = (one.use.next_start or timedelta(0)) >= FAR
    is_late = seen.now - one.since >= OLD
    is_forgotten = is_late and one.stored is not None and seen.now - one.stored.stored_at >= FORGOTTEN_AFTER
    if is_stuck(one, seen) or is_forgotten or (is_far and one.stored is not None):
        return Level.WARNING
    return Level.NOTICE if is_far or is_late else Level.OK
