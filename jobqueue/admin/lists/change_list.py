"""The change list of jobs: it searches ids first, then reads one page of rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.contrib.admin.filters import SimpleListFilter
from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.views.main import PAGE_VAR, ChangeList
from django.core.paginator import InvalidPage
from django.db.models import QuerySet
from django.db.models.functions import Left
from django.http import HttpRequest
from django.utils.formats import number_format
from django.utils.translation import gettext

from jobqueue.admin import display
from jobqueue.admin.base import address
from jobqueue.admin.job.progress import PERCENT
from jobqueue.admin.lists.export import FORMS
from jobqueue.admin.lists.further import goes_on
from jobqueue.admin.lists.live_list import EVERY
from jobqueue.admin.lists.saved_searches import SavedSearches
from jobqueue.admin.search import results
from jobqueue.admin.search.combine import BadQuery
from jobqueue.admin.search.query import HELP, QUALIFIERS
from jobqueue.admin.search.tokens import written
from jobqueue.backends.sql.filters import narrowed
from jobqueue.handlers.registry import registry
from jobqueue.models import DeadLetter, Job
from jobqueue.policy.redaction import is_secret_name
from jobqueue.records import Filter, Matches

#: Columns that may be large. Of the error and the progress, the list reads only the beginning.
LEFT_OUT = ("payload", "result", "context", "progress", "error")
ERROR_SHOWN = 300
MOST_SUGGESTIONS = 200

EXAMPLES = (
    "status:dead_letter error:timeout died:2h",
    "type:resize_image payload.image_id:7",
    "tenant:acme status:queued,in_progress",
)
EXAMPLES_OF_DEAD_LETTERS = (
    "error:timeout died:2h",
    "type:resize_image payload.image_id:7",
    "tenant:acme class:OSError",
)


class JobList(ChangeList):
    """A list that searches jobs in bounded time, and says what it left out."""

    wanted: Filter | None
    oldest_first = False
    matches: Matches | None = None
    #: Why the query is invalid, for the user.
    complaint = ""
    #: The id before which the list begins, if it goes on where another one ended.
    below: str | None = None

    def get_filters_params(self, params: Any = None) -> Any:
        found = super().get_filters_params(params)
        found.pop(results.BELOW, None)
        return found

    def get_query_string(self, new_params: Any = None, remove: Any = None) -> str:
        # Another search, filter or order begins with the first job again.
        stays = bool(new_params) and new_params.keys() <= {PAGE_VAR, results.BELOW}
        return super().get_query_string(new_params, [*(remove or ()), *(() if stays else (results.BELOW,))])

    def get_queryset(self, request: HttpRequest, *args: Any, **kwargs: Any) -> QuerySet[Job]:
        rows: QuerySet[Job] = super().get_queryset(request, *args, **kwargs)
        try:
            self.wanted = self.model_admin.wanted(request)  # type: ignore[attr-defined]
            self.below = results.begins_before(request)
        except BadQuery as error:
            self.wanted, self.complaint = None, str(error)
            return rows.none()
        return narrowed(rows, self.wanted)

    def get_results(self, request: HttpRequest) -> None:
        self.saved = SavedSearches(self.model_admin, request).all()
        self.oldest_first = oldest_first = self.get_ordering(request, self.queryset)[:1] in (["id"], ["pk"])
        if self.wanted is not None:
            self.matches = results.find(self.wanted, oldest_first, self.below)
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
    def saved_address(self) -> str:
        """The URL that saves and deletes searches."""
        return address(self.model_admin, "searches")

    @property
    def as_saved(self) -> str:
        """The query of this list, to be saved."""
        return self.get_query_string(remove=[PAGE_VAR]).removeprefix("?")

    @property
    def is_part(self) -> bool:
        """Return whether jobs that were not searched may match as well."""
        return self.matches is not None and self.matches.is_part and not self.matches.more

    @property
    def might_match(self) -> bool:
        """Return whether any job matches, on this page, on others, or among those that were not searched."""
        return self.matches is not None and self.wanted is not None and (len(self.matches) > 0 or bool(self.note))

    @property
    def offers_all(self) -> bool:
        """Return whether "all that match" are offered: others than those on the page match, or might."""
        return self.might_match and (self.multi_page or self.below is not None or bool(self.note))

    @property
    def more_than(self) -> str:
        """The formatted cap, if there are more matches."""
        matches = self.matches
        return number_format(matches.cap, force_grouping=True) if matches is not None and matches.more else ""

    @property
    def further(self) -> str:
        """The query of the list that goes on where this one ends, if there is anything left to search."""
        if self.matches is None or (self.matches.more and self.oldest_first):
            return ""
        is_last = self.page_num >= self.paginator.num_pages
        rest = self.matches.rest_before if self.is_part or (self.more_than and is_last) else None
        return "" if rest is None else self.get_query_string({results.BELOW: rest}, [PAGE_VAR])

    @property
    def from_the_first(self) -> str:
        """The query of the same search that begins with the newest job, if this one doesn't."""
        return self.get_query_string(remove=[PAGE_VAR]) if self.below is not None else ""

    @property
    def note(self) -> str:
        """A note on what was not searched, unless there are more matches than the cap anyway."""
        if self.wanted is None or self.matches is None or self.matches.more:
            return ""
        notes = (_not_searched(self.wanted, self.matches, self.below), _not_checked(self.wanted, self.matches))
        return " ".join(filter(None, notes))

    @property
    def live(self) -> tuple[str, int] | None:
        """Where an open list asks for its rows, and how often, in seconds."""
        of: Any = self.model_admin
        return None if self.complaint else (f"{of._address('rows')}{self.get_query_string()}", EVERY)

    @property
    def goes_on(self) -> tuple[str, str] | None:
        """Where an open list goes on with the search by itself, and the query of the next part."""
        of: Any = self.model_admin
        is_left = self.wanted is not None and goes_on(self.wanted) and self.is_part and not self.oldest_first
        return (of._address("further"), self.further) if is_left and self.further else None

    @property
    def exports(self) -> list[tuple[str, str]]:
        """The links to export what is listed, on all its pages: pairs of a format and an address."""
        query = self.get_query_string(remove=[PAGE_VAR])
        of: Any = self.model_admin
        return [(form.upper(), f"{of._address(f'export_{form}')}{query}") for form in FORMS]

    @property
    def suggestions(self) -> Iterator[str]:
        """Suggestions for the search box: its keywords, and known values for them."""
        yield from (f"{name}:" for name in QUALIFIERS if name != "payload")
        yield from sorted(_payload_names())[:MOST_SUGGESTIONS]
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
        """Example searches, which can find something in this list."""
        return EXAMPLES_OF_DEAD_LETTERS if issubclass(self.model, DeadLetter) else EXAMPLES


def _payload_names() -> set[str]:
    """Return the names that the payloads of this release's types have, as the search box takes them."""
    names = {name for one in registry for name in one.payload.names if not is_secret_name(name)}
    return {f"payload.{written(name)}:" for name in names if not set(name) & set('.:"\\')}


def _not_searched(wanted: Filter, found: Matches, below: str | None) -> str:
    """Return which jobs were not searched."""
    if found.back_to is None or not found.is_part:
        return ""
    if below is not None:
        said = gettext(
            "The next %(count)s older jobs were searched, back to %(since)s. Still older ones may match as well."
        )
    elif wanted.created_before is not None:
        said = gettext(
            "Only the newest %(count)s jobs before that time were searched, back to %(since)s. Older ones may match "
            "as well."
        )
    elif goes_on(wanted):
        said = gettext(
            "Only the newest %(count)s jobs of this status were searched, back to %(since)s. Older ones may match as "
            "well."
        )
    else:
        said = gettext("Only the newest %(count)s jobs were searched, back to %(since)s. Older ones may match as well.")
    return said % {
        "count": number_format(found.searched, force_grouping=True),
        "since": display.exactly(found.back_to),
    }


def _not_checked(wanted: Filter, found: Matches) -> str:
    """Say that matches may be missing because each is checked for secrets."""
    if not results.may_lack_some(wanted, found):
        return ""
    said = gettext(
        "Each match is checked for secrets before it is shown. Only the newest %(count)s matches are checked."
    )
    return said % {"count": number_format(found.cap, force_grouping=True)}
