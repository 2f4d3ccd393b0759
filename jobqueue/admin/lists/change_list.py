"""The change list of jobs: it searches ids first, then reads one page of rows."""

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
from jobqueue.admin.search import results
from jobqueue.admin.search.combine import BadQuery
from jobqueue.admin.search.query import HELP, QUALIFIERS
from jobqueue.admin.search.tokens import written
from jobqueue.backends.sql.filters import narrowed
from jobqueue.backends.sql.search.plan import ORDERED
from jobqueue.models import Job
from jobqueue.records import Filter, Matches

#: Columns that may be large. Of the error and the progress, the list reads only the beginning.
LEFT_OUT = ("payload", "result", "context", "progress", "error")
ERROR_SHOWN = 300
MOST_SUGGESTIONS = 200

EXAMPLES = (
    "status:dead_letter error:timeout after:2h",
    "type:resize_image payload.image_id:7",
    "tenant:acme status:queued,in_progress",
)


class JobList(ChangeList):
    """A list that searches jobs in bounded time, and says what it left out."""

    wanted: Filter | None
    matches: Matches | None = None
    #: Why the query is invalid, for the user.
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
            self.matches = results.find(self.wanted, oldest_first)
        found: Any = [] if self.matches is None else self.matches
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
        """Read a page of rows by their ids only: further conditions could mislead the query planner."""
        rows: Any = self.model._base_manager.using(self.root_queryset.db)
        found: QuerySet[Job] = (
            rows.filter(pk__in=list(ids))
            .defer(*LEFT_OUT)
            .annotate(error_start=Left("error", ERROR_SHOWN), percent=PERCENT)
        )
        return found

    # For the template

    @property
    def more_than(self) -> str:
        """The formatted cap, if there are more matches."""
        matches = self.matches
        return number_format(matches.cap, force_grouping=True) if matches is not None and matches.more else ""

    @property
    def note(self) -> str:
        """A note on what was not searched, unless there are more matches than the cap anyway."""
        if self.wanted is None or self.matches is None or self.matches.more:
            return ""
        notes = (_not_searched(self.wanted, self.matches), _not_checked(self.wanted, self.matches))
        return " ".join(filter(None, notes))

    @property
    def suggestions(self) -> Iterator[str]:
        """Suggestions for the search box: its keywords, and known values for them."""
        yield from (one.example if name == "payload" else f"{name}:" for name, one in QUALIFIERS.items())
        for spec in self.filter_specs:
            if isinstance(spec, SimpleListFilter) and spec.parameter_name in QUALIFIERS:
                for value, _label in spec.lookup_choices[:MOST_SUGGESTIONS]:
                    yield f"{spec.parameter_name}:{written(str(value))}"

    @property
    def help(self) -> Any:
        """The syntax: pairs of an example and its meaning."""
        return HELP

    @property
    def examples(self) -> tuple[str, ...]:
        """Example searches."""
        return EXAMPLES


def _not_searched(wanted: Filter, found: Matches) -> str:
    """Return which jobs were not searched."""
    if found.back_to is None or not found.is_part:
        return ""
    count = {"count": number_format(found.searched, force_grouping=True), "since": display.exactly(found.back_to)}
    if wanted.created_before is not None:
        said = gettext(
            "Only the newest %(count)s jobs before that time were searched, back to %(since)s. Older ones may match "
            "as well."
        )
    else:
        said = gettext("Only the newest %(count)s jobs were searched, back to %(since)s. Older ones may match as well.")
    return " ".join(filter(None, (said % count, _advice(wanted))))


def _not_checked(wanted: Filter, found: Matches) -> str:
    """Say that matches may be missing because each is checked for secrets."""
    if not results.may_lack_some(wanted, found):
        return ""
    said = gettext(
        "Each match is checked for secrets before it is shown. Only the newest %(count)s matches are checked."
    )
    return said % {"count": number_format(found.cap, force_grouping=True)}


def _advice(wanted: Filter) -> str:
    """Return how to find all matches, if there is a way."""
    if wanted.statuses and wanted.statuses <= ORDERED:
        return gettext("To find all, choose only one status, one queue and one type.")
    if not wanted.statuses and wanted.lease_owner is None:  # a job with a lease owner is in progress
        return gettext("To search all jobs of a status other than completed, choose that status.")
    return ""
