"""The rows that a claim reads on SQLite: their selection, their order, and their conversion to claims."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from operator import itemgetter
from sqlite3 import Connection
from typing import Any

from jobqueue.backends.sql.claims.crowd import Group
from jobqueue.backends.sqlite import statements
from jobqueue.clock import from_text
from jobqueue.models.job import MOST_COUNTED
from jobqueue.policy.limits.limits import Candidate
from jobqueue.records import Claim, ClaimRequest

Row = tuple[Any, ...]
#: A group, and the due time and the id of its first job.
Head = tuple[Group, tuple[str, str]]

#: The indexes of two columns in a row, which has the rowid and then the columns of a claim.
ID = 1
SCHEDULED_AT = 1 + Claim._fields.index("scheduled_at")
#: The columns that make the order of claims.
ORDER = (1 + Claim._fields.index("priority"), SCHEDULED_AT, ID)


def is_fresh(claim: Claim, now: datetime) -> bool:
    """Return whether a job can be claimed: it has not expired, and its fence can be raised."""
    return claim.fence <= MOST_COUNTED and (claim.expires_at is None or claim.expires_at > now)


def may_run(request: ClaimRequest, pauses: set[tuple[str, str]], queue: str, job_type: str) -> bool:
    """Return whether a worker takes jobs of a queue and type now."""
    wanted = job_type in request.types and (request.queues is None or queue in request.queues)
    return wanted and not (pauses and (("queue", queue) in pauses or ("type", job_type) in pauses))


def groups(driver: Connection) -> Iterator[Head]:
    """Yield each group with the due time and the id of its first job."""
    last = Group("", "", 0)
    while found := driver.execute(statements.NEXT_GROUP, last).fetchone():
        last = Group(*found[:3])
        yield last, found[3:]


def in_order(head: Head) -> tuple[Any, ...]:
    """Return the sort key of a group: the position of its first job in the order of claims."""
    group, first = head
    return (group.priority, *first)


def first_of(driver: Connection, groups: Iterable[Group], wanted: dict[str, Any]) -> list[Row]:
    """Return the first jobs of groups in the order of claims."""
    chosen: list[Row] = []
    by_priority: dict[int, list[Group]] = {}
    for group in groups:
        by_priority.setdefault(group.priority, []).append(group)
    for priority in sorted(by_priority):
        if len(chosen) >= wanted["limit"]:
            break
        arms = (
            driver.execute(statements.READY_OF, wanted | {"queue": queue, "type": kind, "priority": priority})
            for queue, kind, _ in by_priority[priority]
        )
        level = [row for arm in arms for row in arm]
        chosen += sorted(level, key=itemgetter(SCHEDULED_AT, ID))
    return chosen[: wanted["limit"]]


def place_of(places: Mapping[str, Candidate], row: Row) -> tuple[Any, ...]:
    """Return the place of a row in the order of claims. Some rows take the places of others."""
    other = places.get(row[ID])
    return itemgetter(*ORDER)(row) if other is None else (other.priority, other.scheduled_at, other.id)


def rows_of(driver: Connection, ids: Iterable[str], owner: str) -> list[Row]:
    """Return the rows of queued jobs."""
    return [driver.execute(statements.READY_BY_ID, {"id": one, "owner": owner}).fetchone() for one in ids]


def claim_of(row: Row) -> Claim:
    """Return a row as a claim."""
    scheduled, created, expires, timeout, crashes = row[SCHEDULED_AT:]
    return Claim._make(
        (
            *row[ID:SCHEDULED_AT],
            from_text(scheduled),
            from_text(created),
            from_text(expires) if expires else None,
            timedelta(seconds=timeout) if timeout else None,
            crashes,
        )
    )
