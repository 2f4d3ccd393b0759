"""The plan of a search, which bounds its time even among millions of jobs.

A search that an index supports finds all matches: by id or key, by parent, and by statuses other than completed, which
have an index each. Failed jobs and dead letters, which wait for somebody, have one in order of id with most columns of
a filter. Any other search covers a range of ids: the newest, or the newest before the range of an earlier search.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import Enum, auto
from typing import Any

from django.db.models import QuerySet

from jobqueue.backends.sql.filters import count_to, ids_from, in_status
from jobqueue.backends.sql.session import Session
from jobqueue.ids import ULID_LENGTH, begins_ulid, least_id
from jobqueue.models import Job
from jobqueue.records import Filter
from jobqueue.states import JobStatus

#: How many rows one search reads: adjacent ones, and scattered ones that an index leads to.
NEWEST, SCATTERED = 20_000, 10_000
#: How many rows a search reads that goes on where an earlier one ended: it may take a second.
FURTHER = 200_000
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
#: The statuses of jobs that wait for somebody. Each has an index in order of id.
WAITING = frozenset({JobStatus.FAILED, JobStatus.DEAD_LETTER})
#: The fields of a filter that such an index can't answer, with their empty values.
_EMPTY_IN_ROWS: dict[str, Any] = {"lease_owner": None, "error": "", "error_class": "", "payload": ()}


class Way(Enum):
    """How a search finds its rows."""

    KEY = auto()  # a few, by a unique index or the primary key
    ORDER = auto()  # along an index in order of id
    WALK = auto()  # along the indexes of waiting statuses, in order of id
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
    number of rows in a set or a range. With ``before_id``, only jobs with lesser ids are searched.
    """

    wanted: Filter
    way: Way
    index: tuple[str, ...] = ()
    id_range: IdRange | None = None
    size: int = 0
    before_id: str | None = None

    @property
    def in_index(self) -> Filter:
        """The part of the filter that the index of a waiting status answers."""
        return replace(self.wanted, statuses=frozenset(), **_EMPTY_IN_ROWS)

    @property
    def in_rows(self) -> Filter:
        """The rest, for which rows must be read."""
        return Filter(**{name: getattr(self.wanted, name) for name in _EMPTY_IN_ROWS})

    @property
    def reads_rows(self) -> bool:
        """Return whether a walk must read rows."""
        return self.in_rows != Filter()


def plan_of(session: Session, wanted: Filter, before_id: str | None = None) -> SearchPlan:
    """Plan a search of all jobs, or of those with ids less than ``before_id``."""
    return replace(_planned(session, wanted, before_id), before_id=before_id)


def _planned(session: Session, wanted: Filter, before_id: str | None) -> SearchPlan:
    if wanted.ids or wanted.idempotency_key is not None:
        return SearchPlan(wanted, Way.KEY)
    if wanted.has_only("id_prefix") and (not wanted.id_prefix or begins_ulid(wanted.id_prefix)):
        return SearchPlan(wanted, Way.ORDER)
    if wanted.parent_id is not None:
        return _by_parent(session.alias, wanted, wanted.parent_id, before_id)
    if wanted.lease_owner is not None and not wanted.statuses:  # other jobs have no lease owner
        wanted = replace(wanted, statuses=frozenset({JobStatus.IN_PROGRESS}))
    if wanted.statuses and wanted.statuses <= WAITING:
        return SearchPlan(wanted, Way.WALK)
    if wanted.statuses and wanted.statuses <= LEADING.keys() and (found := _by_status(session, wanted)):
        return found
    return _in_range(wanted, _newest(session.alias, wanted, before_id))


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


def _by_parent(alias: str, wanted: Filter, parent_id: str, before_id: str | None) -> SearchPlan:
    """Plan a search by parent: in all its jobs, unless they are too many to filter further."""
    children = Job.objects.using(alias).filter(parent_id=parent_id)
    if wanted.has_only("parent_id"):
        return SearchPlan(wanted, Way.ORDER)
    size = count_to(children.order_by("pk"), NEWEST + 1)
    if size <= NEWEST:
        return SearchPlan(wanted, Way.SET, size=size)
    return _in_range(wanted, newest_of(children, wanted, before_id))


def _by_status(session: Session, wanted: Filter) -> SearchPlan | None:
    """Plan a search by status, unless too many jobs have it."""
    index = LEADING[min(wanted.statuses)]
    told = all(_is_in_index(status, wanted) for status in wanted.statuses)
    most = EXACT if told and len(wanted.statuses) == 1 else NEWEST if told else SCATTERED
    with session.index_order(most) as soon:
        size = sum(_entries(session.alias, status, wanted, soon) for status in wanted.statuses)
    if size > soon:
        return None
    return SearchPlan(wanted, Way.INDEX if size > NEWEST else Way.SET, index, size=size)


def _is_in_index(status: JobStatus, wanted: Filter) -> bool:
    """Return whether the index of a status has all columns of the filter, and the id."""
    return "queue" in LEADING[status] and wanted.has_only("statuses", "types", "queues")


def _entries(alias: str, status: JobStatus, wanted: Filter, most: int) -> int:
    """Count the entries to read from the index of a status, up to ``most`` + 1."""
    rows, index = in_status(alias, status), LEADING[status]
    if "queue" in index and wanted.queues:
        rows = rows.filter(queue__in=sorted(wanted.queues))
        if wanted.types:
            rows = rows.filter(type__in=sorted(wanted.types))
    # In the order of the index, so that no planner prefers to read the table.
    return count_to(rows.order_by(*index), most + 1)


def _in_range(wanted: Filter, id_range: IdRange) -> SearchPlan:
    return SearchPlan(wanted, Way.RANGE, id_range=id_range, size=id_range.size)


def _newest(alias: str, wanted: Filter, before_id: str | None) -> IdRange:
    """Find the range to search: the newest jobs, or the newest before a time."""
    rows = Job.objects.using(alias)
    if wanted.created_before is not None:
        rows = rows.filter(pk__lt=least_id(wanted.created_before + _SLACK))
    return newest_of(beginning(rows, wanted.id_prefix) if begins_ulid(wanted.id_prefix) else rows, wanted, before_id)


def newest_of(rows: QuerySet[Job], wanted: Filter, before_id: str | None = None, most: int | None = None) -> IdRange:
    """Find the range of the newest of some rows, or of those whose ids are less than ``before_id``."""
    size = FURTHER if before_id is not None else most or NEWEST
    rows = rows if before_id is None else rows.filter(pk__lt=before_id)
    ids = rows.order_by("pk").values_list("pk", flat=True)
    least, greatest = list(ids[:1]), list(ids.reverse()[:1])
    if not least or not greatest:
        return IdRange("", "", size=0)
    edge = ids_from(rows.order_by("-pk"), size - 1, 1)
    if not edge:
        return IdRange(least[0], greatest[0], count_to(rows.order_by("pk"), size))
    moment = rows.filter(pk=edge[0]).values_list("created_at", flat=True).first()
    # If the range goes back further than the filter, it leaves nothing out.
    if wanted.created_after is not None and moment is not None and moment < wanted.created_after:
        return IdRange(edge[0], greatest[0], size)
    return IdRange(edge[0], greatest[0], size, is_part=edge != least, back_to=moment)
