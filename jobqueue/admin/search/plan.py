"""How far a search looks, so that it answers soon among millions of jobs.

Where an index leads to what is wanted, all of it is found: ids and keys, what a job has enqueued, and the statuses that
wait for somebody, which have an index each. Everything else is looked for in a stretch of jobs that lie together by
id, mostly the newest.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import Enum, auto

from django.db.models import QuerySet

from jobqueue.backends.matching import count_to, ids_from, in_status
from jobqueue.ids import least_id
from jobqueue.models import Job
from jobqueue.records import Filter
from jobqueue.states import JobStatus

#: So many rows are read for one search where they lie together, and where an index leads to each.
NEWEST, SCATTERED = 20_000, 10_000
#: So many entries of an index are read where no row of them is needed.
EXACT = 50_000
#: An id is made a moment before its job is stored, maybe by another clock.
_SLACK = timedelta(minutes=1)

#: The first columns of the index that holds one status alone.
LEADING = {
    JobStatus.QUEUED: ("queue", "type"),
    JobStatus.FAILED: ("queue", "type"),
    JobStatus.DEAD_LETTER: ("queue", "type"),
    JobStatus.IN_PROGRESS: ("lease_until",),
}
#: That of dead letters of one kind of failure.
BY_ERROR = ("error_fingerprint", "completed_at")
#: Whose index has the id behind queue and type, and so is in order of id where both are given.
ORDERED = frozenset({JobStatus.FAILED, JobStatus.DEAD_LETTER})

_ULID_LENGTH = 26
_BEGINNING = re.compile(rf"[0-9A-HJKMNP-TV-Z]{{1,{_ULID_LENGTH}}}")


class Way(Enum):
    """How a search gets to its rows."""

    KEY = auto()  # few, by an index of what is asked for
    ORDER = auto()  # along an index that has them in order of id
    INDEX = auto()  # all entries of an index, and no row but those that are shown
    SET = auto()  # all rows of some statuses, or of a parent
    STRETCH = auto()  # all rows of a stretch of ids


@dataclass(frozen=True, slots=True)
class Stretch:
    """The jobs from one id to another; ``is_part`` where others, which it leaves out, may match as well."""

    low: str
    high: str
    is_part: bool
    back_to: datetime | None = None

    def of(self, rows: QuerySet[Job]) -> QuerySet[Job]:
        """Leave those that lie in it. Both ends are named: between two, Postgres always expects few."""
        return rows.filter(pk__gte=self.low, pk__lte=self.high)


@dataclass(frozen=True, slots=True)
class SearchPlan:
    """What is looked for, which way, and where, if not everywhere; ``index`` begins the index that leads there.

    Of a set ``size`` is how many jobs are looked at.
    """

    wanted: Filter
    way: Way
    index: tuple[str, ...] = ()
    stretch: Stretch | None = None
    size: int = 0

    @property
    def is_part(self) -> bool:
        return self.stretch is not None and self.stretch.is_part


def plan_of(alias: str, wanted: Filter) -> SearchPlan:
    """Decide how to search."""
    if wanted.ids or wanted.idempotency_key is not None:
        return SearchPlan(wanted, Way.KEY)
    if wanted == Filter(id_prefix=wanted.id_prefix) and (not wanted.id_prefix or is_beginning(wanted.id_prefix)):
        return SearchPlan(wanted, Way.ORDER)
    if wanted.parent_id is not None:
        return _by_parent(alias, wanted, wanted.parent_id)
    if wanted.lease_owner is not None and not wanted.statuses:  # nobody else has one
        wanted = replace(wanted, statuses=frozenset({JobStatus.IN_PROGRESS}))
    if wanted.statuses and wanted.statuses <= LEADING.keys() and (found := _by_status(alias, wanted)):
        return found
    return SearchPlan(wanted, Way.STRETCH, stretch=stretch(alias, wanted))


def count_by_status(alias: str, wanted: Filter, most: int) -> int | None:
    """Count the jobs of one status up to one above the most, where its index tells all that is asked for."""
    if len(wanted.statuses) != 1 or not wanted.statuses <= LEADING.keys():
        return None
    (status,) = wanted.statuses
    is_told = _is_in_index(status, wanted) and (wanted.queues or not wanted.types)  # the queue comes first there
    return _entries(alias, status, wanted, most) if is_told else None


def is_beginning(text: str) -> bool:
    """Whether a text can be the beginning of a ULID."""
    return bool(_BEGINNING.fullmatch(text))


def beginning(rows: QuerySet[Job], prefix: str) -> QuerySet[Job]:
    """Leave the rows whose ULID begins so: a range of the primary key, for LIKE finds no index on Postgres."""
    return rows.filter(pk__gte=prefix, pk__lte=prefix.ljust(_ULID_LENGTH, "Z"))


def _by_parent(alias: str, wanted: Filter, parent_id: str) -> SearchPlan:
    """Say how to find what a job has enqueued: all of it, unless it has too many and more is asked for."""
    children = Job.objects.using(alias).filter(parent_id=parent_id)
    if wanted == Filter(parent_id=parent_id):
        return SearchPlan(wanted, Way.ORDER)
    size = count_to(children.order_by("pk"), NEWEST + 1)
    if size <= NEWEST:
        return SearchPlan(wanted, Way.SET, size=size)
    return SearchPlan(wanted, Way.STRETCH, stretch=_newest(children, wanted))


def _by_status(alias: str, wanted: Filter) -> SearchPlan | None:
    """Say how to find jobs by their statuses, unless these have too many."""
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
    """Say whether the index of one status tells all that is asked for, and the id."""
    rest, index = replace(wanted, statuses=frozenset()), _index(status, wanted)
    if index == BY_ERROR:
        return rest == Filter(fingerprint=wanted.fingerprint)
    return "queue" in index and rest == Filter(types=wanted.types, queues=wanted.queues)


def _entries(alias: str, status: JobStatus, wanted: Filter, most: int) -> int:
    """Count what has to be read of the index of one status, and no further than one above the most."""
    rows, index = in_status(alias, status), _index(status, wanted)
    if index == BY_ERROR:
        rows = rows.filter(error_fingerprint=wanted.fingerprint or None)
    elif "queue" in index and wanted.queues:
        rows = rows.filter(queue__in=sorted(wanted.queues))
        if wanted.types:
            rows = rows.filter(type__in=sorted(wanted.types))
    # In the order of the index, for which no planner would rather read the table.
    return count_to(rows.order_by(*index), most + 1)


def _index(status: JobStatus, wanted: Filter) -> tuple[str, ...]:
    return BY_ERROR if status is JobStatus.DEAD_LETTER and wanted.fingerprint is not None else LEADING[status]


def stretch(alias: str, wanted: Filter) -> Stretch:
    """Find the stretch to look at: the newest jobs, or those before a moment."""
    rows = Job.objects.using(alias)
    if wanted.created_before is not None:
        rows = rows.filter(pk__lt=least_id(wanted.created_before + _SLACK))
    return _newest(beginning(rows, wanted.id_prefix) if is_beginning(wanted.id_prefix) else rows, wanted)


def _newest(rows: QuerySet[Job], wanted: Filter) -> Stretch:
    """Find the stretch that the newest of some rows make."""
    whole = ends(rows)
    if whole is None:
        return Stretch("", "", is_part=False)
    edge = ids_from(rows.order_by("-pk"), NEWEST - 1, 1)
    if not edge:
        return whole
    moment = rows.filter(pk=edge[0]).values_list("created_at", flat=True).first()
    # What is older than all that is wanted leaves nothing out.
    is_enough = wanted.created_after is not None and moment is not None and moment < wanted.created_after
    return Stretch(edge[0], whole.high, is_part=not is_enough, back_to=moment)


def ends(rows: QuerySet[Job]) -> Stretch | None:
    """Find the first and the last of some rows, if there are any."""
    ids = rows.order_by("pk").values_list("pk", flat=True)
    least, greatest = list(ids[:1]), list(ids.reverse()[:1])
    return Stretch(least[0], greatest[0], is_part=False) if least and greatest else None
