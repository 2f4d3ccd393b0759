"""The jobs in the admin: lists, search, and a page each. Nothing is written here but by an operator's verbs."""

from __future__ import annotations

from typing import Any, ClassVar

from django.contrib import admin
from django.contrib.admin.options import ShowFacets
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.html import format_html
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from jobqueue import conf
from jobqueue.admin import detail, display
from jobqueue.admin.acting import Acting
from jobqueue.admin.filters import CreatedFilter, QueueFilter, StatusFilter, TypeFilter
from jobqueue.admin.listing import CappedPaginator, JobList, search
from jobqueue.clock import SYSTEM
from jobqueue.models import Job
from jobqueue.states import JobStatus


class ReadingJobs(Acting):
    """What every list of jobs shares."""

    change_list_template = "jobqueue/admin/change_list.html"
    change_form_template = "jobqueue/admin/job.html"
    list_display: Any = ("named", "shown_status", "when", "tries", "shown_error", "queue", "priority", "tenant")
    list_filter: ClassVar[Any] = (StatusFilter, TypeFilter, QueueFilter, CreatedFilter)
    # Any other column has no index, and a million rows would be sorted for it.
    sortable_by = ("named",)
    ordering = ("-id",)
    search_fields = ("id", "idempotency_key", "type", "tenant")
    search_help_text = _("An id or its beginning, an idempotency key, a job type, or a tenant.")
    readonly_fields = detail.EVERY_FIELD
    paginator = CappedPaginator
    show_full_result_count = False
    show_facets = ShowFacets.NEVER
    list_per_page = 100
    list_max_show_all = 0
    list_select_related = ()

    class Media:
        css = {"all": ("jobqueue/admin.css",)}

    # Who may

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Job | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Job | None = None) -> bool:
        return False

    def has_view_permission(self, request: HttpRequest, obj: Job | None = None) -> bool:
        return request.user.has_perm("jobqueue.view_job")

    # Which rows

    def lookup_allowed(self, lookup: str, value: Any, request: HttpRequest | None = None) -> bool:
        # Only the filters' own: others could be used to scan payloads, and to guess at what is redacted.
        return lookup in {one.parameter_name for one in self.list_filter}

    def get_queryset(self, request: HttpRequest) -> QuerySet[Job]:
        return super().get_queryset(request).using(conf.get("DATABASE"))

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Job | None:
        # Postgres has no text with a NUL in it, and would not be asked for one.
        return None if "\0" in object_id else super().get_object(request, object_id, from_field)

    def get_changelist(self, request: HttpRequest, **_kwargs: Any) -> type[JobList]:
        return JobList

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Job], search_term: str
    ) -> tuple[QuerySet[Job], bool]:
        term = search_term.strip()
        return (search(queryset, term) if term else queryset), False

    # The columns

    @admin.display(description=_("job"), ordering="id")
    def named(self, job: Job) -> Any:
        return format_html('<span class="jq-type">{}</span><span class="jq-id">{}</span>', job.type, job.pk)

    @admin.display(description=_("status"))
    def shown_status(self, job: Job) -> Any:
        return display.badge(job.status, job.get_status_display())

    @admin.display(description=_("attempts"))
    def tries(self, job: Job) -> str:
        return f"{job.attempts}/{job.max_retries}"

    @admin.display(description=_("when"))
    def when(self, job: Job) -> Any:
        if job.status == JobStatus.QUEUED and job.scheduled_at > SYSTEM.now():
            return display.near(job.scheduled_at, gettext("runs %(when)s") % {"when": display.ago(job.scheduled_at)})
        return display.near(job.created_at, display.ago(job.created_at))

    @admin.display(description=_("error"))
    def shown_error(self, job: Any) -> Any:
        line = display.first_line(job.error_start)
        return format_html('<span class="jq-error" title="{}">{}</span>', line, line) if line else None

    # The page

    def get_fieldsets(self, request: HttpRequest, obj: Job | None = None) -> Any:
        return detail.parts(obj) if obj else []

    def render_change_form(
        self,
        request: HttpRequest,
        context: dict[str, Any],
        add: bool = False,
        change: bool = False,
        form_url: str = "",
        obj: Job | None = None,
    ) -> HttpResponse:
        if obj is not None:
            attempts, more = detail.history(obj)
            context |= {
                "attempts": attempts,
                "more_attempts": more,
                "verbs": [(verb, self._address(verb.name, obj.pk)) for verb in self.verbs_for(request, obj)],
            }
        return super().render_change_form(request, context, add, change, form_url, obj)


@admin.register(Job)
class JobAdmin(ReadingJobs):
    """All jobs."""

    actions = ("retry", "cancel", "purge")
