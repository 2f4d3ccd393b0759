"""The plan of a search, which bounds its time even among millions of jobs.

A search that an index supports finds all matches: by id or key, by parent, and by statuses other than completed, which
have an index each. Any other search covers a range of ids, mostly the newest.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import Enum, auto

from django.db.models import QuerySet

from jobqueue.backends.sql.filters import count_to, ids_from, in_status
from jobqueue.ids import ULID_LENGTH, begins_ulid, least_id
from jobqueue.models import Job
from jobqueue.records import Filter
from jobqueue.states import JobStatus

#: How many rows one search reads: adjacent ones, and scattered ones that an index leads to.
NEWEST, SCATTERED = 20_000, 10_000
#: How many entries of an index are read if their rows aren't needed.
EXACT = 50_000
#: An id is made shortly before its job is stored, maybe with another clock.
_SLACK = timedelta(minutes=1)

#: The first columns of the partial index of each status.
LEADING = {
    JobStatus.QUEUED: ("queue", "type"),
    JobStatus.FAILED: ("queue", "type"),
    JobStatus.DEAD_LETTER: ("queue", "type"),
    JobStatus.IN_PROGRESS: ("lease_until",),
}
#: Those of the index of dead letters by error.
BY_ERROR = ("error_fingerprint", "completed_at")
#: Statuses whose index has the id after queue and type, so that it is sorted by id if both are given.
ORDERED = frozenset({JobStatus.FAILED, JobStatus.DEAD_LETTER})


class Way(Enum):
    """How a search finds its rows."""

    KEY = auto()  # a few, by a unique index or the primary key
    ORDER = auto()  # along an index in order of id
    INDEX = auto()  # all entries of an index, and only the rows that are shown
    SET = auto()  # all rows of some statuses or of a parent
    RANGE = auto()  # all rows in a range of ids


@dataclass(frozen=True, slots=True)
class IdRange:
    """The jobs from one id to another, and their number. ``is_part`` says that older ones may match as well."""

    low: str
    high: str
    size: int
    is_part: bool = False
    back_to: datetime | None = None

    def of(self, rows: QuerySet[Job]) -> QuerySet[Job]:
        """Keep the rows in the range. With both ends given, Postgres always expects few rows."""
        return rows.filter(pk__gte=self.low, pk__lte=self.high)


@dataclass(frozen=True, slots=True)
class SearchPlan:
    """The filter of a search, how it finds rows, and in which range.

    ``index`` contains the leading columns of the database index that the search uses. ``size`` is the
    number of rows in a set or a range.
    """

    wanted: Filter
    way: Way
    index: tuple[str, ...] = ()
    id_range: IdRange | None = None
    size: int = 0


def plan_of(alias: str, wanted: Filter) -> SearchPlan:
    """Plan a search."""
    if wanted.ids or wanted.idempotency_key is not None:
        return SearchPlan(wanted, Way.KEY)
    if wanted == Filter(id_prefix=wanted.id_prefix) and (not wanted.id_prefix or begins_ulid(wanted.id_prefix)):
        return SearchPlan(wanted, Way.ORDER)
    if wanted.parent_id is not None:
        return _by_parent(alias, wanted, wanted.parent_id)
    if wanted.lease_owner is not None and not wanted.statuses:  # other jobs have no lease owner
        wanted = replace(wanted, statuses=frozenset({JobStatus.IN_PROGRESS}))
    if wanted.statuses and wanted.statuses <= LEADING.keys() and (found := _by_status(alias, wanted)):
        return found
    return _in_range(wanted, _newest(alias, wanted))


def count_by_status(alias: str, wanted: Filter, most: int) -> int | None:
    """Count the jobs of one status up to ``most`` + 1, or return ``None`` if its index isn't enough for that."""
    if len(wanted.statuses) != 1 or not wanted.statuses <= LEADING.keys():
        return None
    (status,) = wanted.statuses
    is_told = _is_in_index(status, wanted) and (wanted.queues or not wanted.types)  # the queue is its first column
    return _entries(alias, status, wanted, most) if is_told else None


def beginning(rows: QuerySet[Job], prefix: str) -> QuerySet[Job]:
    """Keep the rows whose ULID begins with a prefix, by a range: on Postgres, LIKE uses no index."""
    return rows.filter(pk__gte=prefix, pk__lte=prefix.ljust(ULID_LENGTH, "Z"))


def _by_parent(alias: str, wanted: Filter, parent_id: str) -> SearchPlan:
    """Plan a search by parent: in all its jobs, unless they are too many to filter further."""
    children = Job.objects.using(alias).filter(parent_id=parent_id)
    if wanted == Filter(parent_id=parent_id):
        return SearchPlan(wanted, Way.ORDER)
    size = count_to(children.order_by("pk"), NEWEST + 1)
    if size <= NEWEST:
        return SearchPlan(wanted, Way.SET, size=size)
    return _in_range(wanted, _newest_of(children, wanted))


def _by_status(alias: str, wanted: Filter) -> SearchPlan | None:
    """Plan a search by status, unless too many jobs have it."""
    (first, *others) = wanted.statuses
    index = _index(min(wanted.statuses), wanted)
    told = all(_is_in_index(status, wanted) for status in wanted.statuses)
    alone = told and not others
    if alone and first in ORDERED and len(wanted.queues) == len(wanted.types) == 1 and wanted.fingerprint is None:
        return SearchPlan(wanted, Way.ORDER, index)
    most = EXACT if alone else NEWEST if told else SCATTERED
    size = sum(_entries(alias, status, wanted, most) for status in wanted.statuses)
    if size > most:
        return None
    return SearchPlan(wanted, Way.INDEX if size > NEWEST else Way.SET, index, size=size)


def _is_in_index(status: JobStatus, wanted: Filter) -> bool:
    """Return whether the index of a status has all columns of the filter, and the id."""
    rest, index = replace(wanted, statuses=frozenset()), _index(status, wanted)
    if index == BY_ERROR:
        return rest == Filter(fingerprint=wanted.fingerprint)
    return "queue" in index and rest == Filter(types=wanted.types, queues=wanted.queues)


def _entries(alias: str, status: JobStatus, wanted: Filter, most: int) -> int:
    """Count the entries to read from the index of a status, up to ``most`` + 1."""
    rows, index = in_status(alias, status), _index(status, wanted)
    if index == BY_ERROR:
        rows = rows.filter(error_fingerprint=wanted.fingerprint or None)
    elif "queue" in index and wanted.queues:
        rows = rows.filter(queue__in=sorted(wanted.queues))
        if wanted.types:
            rows = rows.filter(type__in=sorted(wanted.types))
    # In the order of the index, so that no planner prefers to read the table.
    return count_to(rows.order_by(*index), most + 1)


def _index(status: JobStatus, wanted: Filter) -> tuple[str, ...]:
    return BY_ERROR if status is JobStatus.DEAD_LETTER and wanted.fingerprint is not None else LEADING[status]


def _in_range(wanted: Filter, id_range: IdRange) -> SearchPlan:
    return SearchPlan(wanted, Way.RANGE, id_range=id_range, size=id_range.size)


def _newest(alias: str, wanted: Filter) -> IdRange:
    """Find the range to search: the newest jobs, or the newest before a time."""
    rows = Job.objects.using(alias)
    if wanted.created_before is not None:
        rows = rows.filter(pk__lt=least_id(wanted.created_before + _SLACK))
    return _newest_of(beginning(rows, wanted.id_prefix) if begins_ulid(wanted.id_prefix) else rows, wanted)


def _newest_of(rows: QuerySet[Job], wanted: Filter) -> IdRange:
    """Find the range of the newest of some rows."""
    ids = rows.order_by("pk").values_list("pk", flat=True)
    least, greatest = list(ids[:1]), list(ids.reverse()[:1])
    if not least or not greatest:
        return IdRange("", "", size=0)
    edge = ids_from(rows.order_by("-pk"), NEWEST - 1, 1)
    if not edge:
        return IdRange(least[0], greatest[0], count_to(rows.order_by("pk"), NEWEST))
    moment = rows.filter(pk=edge[0]).values_list("created_at", flat=True).first()
    # If the range goes back further than the filter, it leaves nothing out.
    if wanted.created_after is not None and moment is not None and moment < wanted.created_after:
        return IdRange(edge[0], greatest[0], NEWEST)
    return IdRange(edge[0], greatest[0], NEWEST, is_part=True, back_to=moment)
