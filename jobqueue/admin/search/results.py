"""Which jobs a list shows: what was asked for in the address, and the ids of what is found, counted to a cap."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from django.db.models import QuerySet, Value
from django.db.models.functions import Concat
from django.http import HttpRequest

from jobqueue import conf
from jobqueue.admin.lists.filters import BESIDE
from jobqueue.admin.search.combine import both
from jobqueue.admin.search.plan import SearchPlan, Way, beginning, count_by_status, plan_of
from jobqueue.admin.search.query import parse
from jobqueue.backends.matching import count_to, ids_from, literally, narrowed
from jobqueue.models import Job
from jobqueue.orders.shown import is_checked, shown
from jobqueue.records import Filter

#: Counted and paged through: so many, and no more.
CAP = 10_000
#: The same where each match is looked at by itself, since it may be a secret's.
CAP_OF_CHECKED = 1_000


class Counted(NamedTuple):
    """How many match, at most the cap; whether there are more; whether only a part of the table was looked at."""

    found: int
    more: bool
    part: bool


class Keys:
    """The ids of what was found, in a list's order, as a paginator takes them: to the cap."""

    def __init__(
        self, ids: QuerySet[Job] | Sequence[str], found: int, plan: SearchPlan, *, may_lack_some: bool = False
    ) -> None:
        self._ids = ids
        self._found = found
        self.plan = plan
        self.cap = _cap(plan.wanted)
        #: Whether more may match than were looked at. Whether they do is not told: it would tell of secrets.
        self.may_lack_some = may_lack_some and not self.more

    def __len__(self) -> int:
        return min(self._found, self.cap)

    def __getitem__(self, part: slice) -> list[str]:
        start, stop, _step = part.indices(len(self))
        if isinstance(self._ids, QuerySet):
            return ids_from(self._ids, start, stop - start)
        return list(self._ids[start:stop])

    @property
    def more(self) -> bool:
        """Whether there are more than can be paged through."""
        return self._found > self.cap


def wanted(request: HttpRequest) -> Filter:
    """Fold the search box and what is chosen beside the list into one filter. Raises BadQuery."""
    found = parse(request.GET.get("q", ""))
    for parameter, read in BESIDE.items():
        if (value := request.GET.get(parameter)) is not None:
            found = both(found, read(value))
    return found


def counted(asked: Filter) -> Counted:
    """Count as a list does, in bounded time; and further than it looks where an index tells how many there are."""
    if (told := count_by_status(conf.get("DATABASE"), asked, CAP)) is not None:
        return Counted(min(told, CAP), told > CAP, False)
    keys = find(Job.objects.using(conf.get("DATABASE")), asked)
    return Counted(len(keys), keys.more, keys.plan.is_part)


def find(rows: QuerySet[Job], asked: Filter, oldest_first: bool = False) -> Keys:
    """Find the ids of those among some rows that a filter lets through."""
    plan = plan_of(rows.db, asked)
    if plan.way is Way.ORDER or plan.way is Way.INDEX:
        return _along(rows, plan, oldest_first)
    ids = shown(asked, _looked_through(rows, plan))
    seen = ids[: _cap(asked)]
    return Keys(seen[::-1] if oldest_first else seen, len(ids), plan, may_lack_some=_is_wide(rows, plan))


def _along(rows: QuerySet[Job], plan: SearchPlan, oldest_first: bool) -> Keys:
    """Have the database page through what an index has."""
    if plan.index:
        (rows,) = _by_status(rows, plan)
    elif plan.wanted.parent_id is not None:
        rows = narrowed(rows, plan.wanted)
    elif plan.wanted.id_prefix:
        rows = beginning(rows, plan.wanted.id_prefix)
    newest_first = rows.order_by(_expressed("pk").desc() if plan.way is Way.INDEX else "-pk")
    found = count_to(rows.order_by(*(plan.index or ["pk"])), CAP + 1)
    return Keys(newest_first.reverse() if oldest_first else newest_first, found, plan)


def _expressed(column: str) -> Concat:
    """Write a column as an expression, so that no planner takes an index for it, past all that is no match."""
    return Concat(column, Value(""))


def _looked_through(rows: QuerySet[Job], plan: SearchPlan) -> list[str]:
    """Fetch the ids of matches, newest first, up to one above the cap."""
    most = _cap(plan.wanted) + 1
    if plan.way is Way.SET:
        by = _by_parent if plan.wanted.parent_id is not None else _by_status
        parts = [part.order_by(_expressed("pk").desc()) for part in by(rows, plan)]
    elif plan.stretch is not None:
        parts = [plan.stretch.of(narrowed(rows, plan.wanted)).order_by("-pk")]
    else:
        parts = [narrowed(rows, plan.wanted).order_by()]
    found = [job_id for part in parts for job_id in part.values_list("pk", flat=True)[:most]]
    return sorted(found, reverse=True)[:most]


def _is_wide(rows: QuerySet[Job], plan: SearchPlan) -> bool:
    """Say whether there are more jobs where matches are looked for than matches are looked at one by one."""
    if not is_checked(plan.wanted):
        return False
    if plan.stretch is None:
        return plan.size > CAP_OF_CHECKED
    return count_to(plan.stretch.of(rows).order_by("pk"), CAP_OF_CHECKED + 1) > CAP_OF_CHECKED


def _by_status(rows: QuerySet[Job], plan: SearchPlan) -> list[QuerySet[Job]]:
    """Part rows by status, so that each is found by the index that holds it alone."""
    rest = replace(plan.wanted, statuses=frozenset())
    return [narrowed(rows.filter(status=literally(status)), rest) for status in sorted(plan.wanted.statuses)]


def _by_parent(rows: QuerySet[Job], plan: SearchPlan) -> list[QuerySet[Job]]:
    """Leave what a job has enqueued, by its own index; that of a status would have all that are in it."""
    found = narrowed(rows, replace(plan.wanted, statuses=frozenset()))
    if plan.wanted.statuses:
        found = found.alias(state=_expressed("status")).filter(state__in=sorted(plan.wanted.statuses))
    return [found]


def _cap(asked: Filter) -> int:
    return min(CAP, CAP_OF_CHECKED) if is_checked(asked) else CAP
