"""Django's list of rows, as far as it is another one here: ids are found first, then one page of rows is read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.contrib.admin.filters import SimpleListFilter
from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.views.main import ChangeList
from django.core.paginator import InvalidPage
from django.db.models import QuerySet
from django.db.models.functions import Left
from django.http import HttpRequest
from django.utils.formats import number_format
from django.utils.translation import gettext

from jobqueue.admin import display
from jobqueue.admin.job.progress import PERCENT
from jobqueue.admin.search import plan, results
from jobqueue.admin.search.combine import BadQuery
from jobqueue.admin.search.query import HELP, QUALIFIERS
from jobqueue.admin.search.tokens import written
from jobqueue.backends.matching import narrowed
from jobqueue.models import Job
from jobqueue.records import Filter

#: JSON and texts of any length; of the error and of progress the list shows a little.
LEFT_OUT = ("payload", "result", "context", "progress", "error")
ERROR_SHOWN = 300
MOST_SUGGESTIONS = 200

EXAMPLES = (
    "status:dead_letter error:timeout after:2h",
    "type:resize_image payload.image_id:7",
    "tenant:acme status:queued,in_progress",
)


class JobList(ChangeList):
    """A list that finds its jobs within bounds, and says where these were met."""

    wanted: Filter | None
    keys: results.Keys | None = None
    #: Why nothing can be found, for whoever typed it.
    complaint = ""

    def get_queryset(self, request: HttpRequest, *args: Any, **kwargs: Any) -> QuerySet[Job]:
        rows: QuerySet[Job] = super().get_queryset(request, *args, **kwargs)
        try:
            self.wanted = self.model_admin.wanted(request)  # type: ignore[attr-defined]
        except BadQuery as error:
            self.wanted, self.complaint = None, str(error)
            return rows.none()
        return narrowed(rows, self.wanted)

    def get_results(self, request: HttpRequest) -> None:
        oldest_first = self.get_ordering(request, self.queryset)[:1] in (["id"], ["pk"])
        if self.wanted is not None:
            self.keys = results.find(self.root_queryset, self.wanted, oldest_first)
        found: Any = [] if self.keys is None else self.keys
        paginator = self.model_admin.get_paginator(request, found, self.list_per_page)
        self.paginator = paginator
        self.result_count = paginator.count
        self.multi_page = paginator.count > self.list_per_page
        self.show_full_result_count = self.can_show_all = False
        self.show_admin_actions = True
        self.full_result_count = None
        try:
            ids = paginator.page(self.page_num if self.multi_page else 1).object_list
        except InvalidPage as error:
            raise IncorrectLookupParameters from error
        self.result_list = self._rows(ids).order_by("pk" if oldest_first else "-pk")

    def _rows(self, ids: Any) -> QuerySet[Job]:
        """Read a page of rows, by id alone: whatever else is said could lead a planner astray."""
        rows: Any = self.model._base_manager.using(self.root_queryset.db)
        found: QuerySet[Job] = (
            rows.filter(pk__in=list(ids))
            .defer(*LEFT_OUT)
            .annotate(error_start=Left("error", ERROR_SHOWN), percent=PERCENT)
        )
        return found

    # What the page says

    @property
    def more_than(self) -> str:
        """The cap as people write it, where it was met."""
        return number_format(self.keys.cap, force_grouping=True) if self.keys is not None and self.keys.more else ""

    @property
    def note(self) -> str:
        """What was not looked at, in words; nothing, where the pages are full of what was found."""
        if self.keys is None or self.keys.more:
            return ""
        return " ".join(filter(None, (_not_reached(self.keys.plan), _not_checked(self.keys))))

    @property
    def suggestions(self) -> Iterator[str]:
        """What the search box offers: all there is to ask for, and the known names."""
        yield from (one.example if name == "payload" else f"{name}:" for name, one in QUALIFIERS.items())
        for spec in self.filter_specs:
            if isinstance(spec, SimpleListFilter) and spec.parameter_name in QUALIFIERS:
                for value, _label in spec.lookup_choices[:MOST_SUGGESTIONS]:
                    yield f"{spec.parameter_name}:{written(str(value))}"

    @property
    def help(self) -> Any:
        """The syntax, one example and its meaning at a time."""
        return HELP

    @property
    def examples(self) -> tuple[str, ...]:
        """Searches to begin with."""
        return EXAMPLES


def _not_reached(reached: plan.SearchPlan) -> str:
    """Say which jobs were not looked at."""
    wanted, stretch = reached.wanted, reached.stretch
    if stretch is None or stretch.back_to is None or not stretch.is_part:
        return ""
    count = {
        "count": number_format(plan.NEWEST, force_grouping=True),
        "since": display.exactly(stretch.back_to),
    }
    if wanted.created_before is not None:
        said = gettext(
            "Only the newest %(count)s jobs before that moment were looked at, back to %(since)s; older ones may "
            "match as well."
        )
    else:
        said = gettext(
            "Only the newest %(count)s jobs were looked at, back to %(since)s; older ones may match as well."
        )
    return " ".join(filter(None, (said % count, _advice(wanted))))


def _not_checked(keys: results.Keys) -> str:
    """Say that matches may be left out since each is looked at by itself."""
    if not keys.may_lack_some:
        return ""
    said = gettext("Each match is checked for secrets before it is shown; of more than %(count)s only the newest are.")
    return said % {"count": number_format(keys.cap, force_grouping=True)}


def _advice(wanted: Filter) -> str:
    """Say how all would be found, where there is a way."""
    if wanted.statuses and wanted.statuses <= plan.ORDERED:
        return gettext("With one status, one queue and one type chosen, and nothing else, all are found.")
    if not wanted.statuses:
        return gettext("Where a status is chosen that waits for somebody, all of its jobs are looked at.")
    return ""
