"""The jobs in the admin: lists, search, and a page for each. Only an operator's verbs change them."""

from __future__ import annotations

from typing import Any, ClassVar

from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.options import ShowFacets
from django.core.exceptions import BadRequest
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path

from jobqueue import conf
from jobqueue.admin.base import address
from jobqueue.admin.job import detail
from jobqueue.admin.lists.change_list import JobList
from jobqueue.admin.lists.columns import Columns
from jobqueue.admin.lists.export import LONGEST_ADDRESS
from jobqueue.admin.lists.filters import CreatedFilter, QueueFilter, StatusFilter, TypeFilter
from jobqueue.admin.lists.further import FurtherSearch
from jobqueue.admin.lists.saved_searches import SavedSearches
from jobqueue.admin.search import results
from jobqueue.admin.search.combine import BadQuery, both
from jobqueue.models import DeadLetter, Job
from jobqueue.records import Filter
from jobqueue.states import JobStatus


class ReadingJobs(Columns, FurtherSearch):
    """The base of the lists of jobs."""

    change_list_template = "jobqueue/admin/change_list.html"
    list_display: Any = ("named", "shown_status", "placed", "when", "shown_error")
    list_filter: ClassVar[Any] = (StatusFilter, TypeFilter, QueueFilter, CreatedFilter)
    # No other column has an index: a million rows would have to be sorted.
    sortable_by = ("named",)
    ordering = ("-id",)
    show_full_result_count = False
    show_facets = ShowFacets.NEVER
    list_per_page = 100
    list_max_show_all = 0
    list_select_related = ()

    class Media:
        css = {"all": ("jobqueue/admin.css",)}

    # Permissions

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Job | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Job | None = None) -> bool:
        return False

    def has_view_permission(self, request: HttpRequest, obj: Job | None = None) -> bool:
        return request.user.has_perm("jobqueue.view_job")

    # Rows

    def lookup_allowed(self, lookup: str, value: Any, request: HttpRequest | None = None) -> bool:
        # Only those of the filters: others could scan payloads and guess redacted values.
        return lookup in {one.parameter_name for one in self.list_filter}

    def get_queryset(self, request: HttpRequest) -> QuerySet[Job]:
        # JSON is decoded where it is shown, not by the driver: one unreadable value must not break the list.
        return super().get_queryset(request).using(conf.get("DATABASE")).defer(*detail.JSON_COLUMNS)

    def get_urls(self) -> list[URLPattern]:
        # Before the URLs of a job: a quoted id never begins with this underscore.
        view = self.admin_site.admin_view(self.searches_view)
        name = f"{self.opts.app_label}_{self.opts.model_name}_searches"
        return [path("_searches/", view, name=name), *super().get_urls()]

    @property
    def list_address(self) -> str:
        """The URL of the list."""
        return address(self, "changelist")

    def searches_view(self, request: HttpRequest) -> HttpResponse:
        """Save or delete a search of the user."""
        return SavedSearches(self, request).answer(self.list_address)

    def get_changelist(self, request: HttpRequest, **_kwargs: Any) -> type[JobList]:
        return JobList

    def wanted(self, request: HttpRequest) -> Filter:
        """Return the filter of the list. Raises BadQuery."""
        return both(self._of_all, results.wanted(request))

    @property
    def _of_all(self) -> Filter:
        is_dead = issubclass(self.model, DeadLetter)
        return Filter(statuses=frozenset({JobStatus.DEAD_LETTER})) if is_dead else Filter()

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        # A list repeats its URL in each of its links.
        if len(request.META.get("QUERY_STRING", "")) > LONGEST_ADDRESS:
            raise BadRequest("The address is too long.")
        if request.POST.getlist("select_across")[-1:] == ["1"] and ACTION_CHECKBOX_NAME not in request.POST:
            # All that match may be none of those shown. Django would demand a selected row.
            given = request.POST.copy()
            given[ACTION_CHECKBOX_NAME] = ""
            request.POST = given  # type: ignore[assignment]
        return super().changelist_view(request, extra_context)

    def response_action(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse | None:
        try:
            return super().response_action(request, *args, **kwargs)
        except BadQuery as error:
            messages.error(request, str(error))
            return None


@admin.register(Job)
class JobAdmin(ReadingJobs):
    """All jobs, with all verbs."""

    actions = ("retry", "run_now", "reschedule", "prioritise", "move", "cancel", "purge")

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        context = {"enqueue_address": self.enqueue_address(request), **(extra_context or {})}
        return super().changelist_view(request, context)
