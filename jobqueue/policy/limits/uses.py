"""What is in use of limits, from the running jobs and the starts in the windows of rates. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import groupby, islice
from typing import NamedTuple

from jobqueue.policy.limits.limits import Account, Allowances, LimitBook, keys_of
from jobqueue.records.limit import Limit, LimitKind, LimitUse

#: How many of the running jobs a use names.
NAMED = 10


class Running(NamedTuple):
    """A job that has a lease."""

    id: str
    queue: str
    type: str
    keys: str | None
    started_at: datetime | None


#: What the limits of a job depend on: its queue, its type and its keys.
Kind = tuple[str, str, str | None]
#: The starts in the window of a rate: place, key, count and the time until the first of them leaves.
Starts = tuple[str, str, int, timedelta]


def accounts_of(book: LimitBook, kinds: Iterable[Kind]) -> dict[Account, Limit]:
    """Return the limits of jobs of these kinds, by place and value of the key."""
    allowances = Allowances(book)
    return {account: limit for kind in kinds for limit, account in allowances.accounts(*kind)}


def uses_of(
    book: LimitBook, accounts: Mapping[Account, Limit], running: Iterable[Running], starts: Iterable[Starts]
) -> list[LimitUse]:
    """Return what is in use of these accounts, in their order."""
    found = {account: LimitUse(limit, account[1], 0) for account, limit in accounts.items()}
    used = _used(book, running, starts, {place: limit for (place, _value), limit in accounts.items()})
    found |= {(one.limit.place, one.value): one for one in used if (one.limit.place, one.value) in found}
    return list(found.values())


def uses(
    book: LimitBook,
    pairs: Iterable[tuple[str, str]],
    running: Iterable[Running],
    starts: Iterable[Starts],
    most: int,
) -> list[LimitUse]:
    """Return what is in use of the limits of pairs of queue and type, the most used first."""
    limits = {limit.place: limit for pair in pairs for limit in book.of(*pair)}
    found = _used(book, running, starts, limits)
    used = {one.limit.place for one in found}
    found += [LimitUse(limit, "", 0) for place, limit in limits.items() if place not in used and not limit.key]
    found.sort(key=lambda use: (use.limit.place, -use.used, use.value))
    by_place = groupby(found, key=lambda use: use.limit.place)
    return [use for _place, several in by_place for use in islice(several, most)]


def _used(
    book: LimitBook, running: Iterable[Running], starts: Iterable[Starts], limits: Mapping[str, Limit]
) -> list[LimitUse]:
    jobs: dict[Account, list[Running]] = {}
    for one in running:
        values = keys_of(one.keys)
        for limit in book.of(one.queue, one.type):
            if limit.kind is LimitKind.CONCURRENCY and (not limit.key or limit.key in values):
                jobs.setdefault((limit.place, values[limit.key] if limit.key else ""), []).append(one)
    found = [_occupied(limits[place], value, several) for (place, value), several in jobs.items() if place in limits]
    for place, value, count, frees in starts:
        if place in limits:
            wait = frees if count >= limits[place].number else None
            found.append(LimitUse(limits[place], value, count, next_start=wait))
    return found


def _occupied(limit: Limit, value: str, jobs: Sequence[Running]) -> LimitUse:
    ids, started = sorted(one.id for one in jobs), [one.started_at for one in jobs if one.started_at]
    return LimitUse(limit, value, len(jobs), running=tuple(ids[:NAMED]), since=max(started, default=None))
