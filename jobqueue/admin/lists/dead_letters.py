"""The dead letters in the admin: by error and as a list, to be retried or purged."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.core.exceptions import BadRequest, PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext

from jobqueue.admin.actions.verbs import VERBS
from jobqueue.admin.base import LOOKS, address, breadcrumb, page
from jobqueue.admin.lists import error_groups
from jobqueue.admin.lists.filters import CreatedFilter, QueueFilter, TypeFilter
from jobqueue.admin.lists.jobs import ReadingJobs
from jobqueue.backends import current
from jobqueue.models import DeadLetter
from jobqueue.records import Filter

_READS = ("GET", "HEAD")


@admin.register(DeadLetter)
class DeadLetterAdmin(ReadingJobs):
    """Dead letters: first grouped by error, then as a list."""

    actions = ("retry", "purge")
    list_filter = (TypeFilter, QueueFilter, CreatedFilter)
    list_display = ("named", "placed", "when", "tries", "shown_error")
    change_list_template = "jobqueue/admin/dead_letters.html"

    def get_urls(self) -> list[URLPattern]:
        # Before the URLs of a job: a quoted id never contains these underscores.
        own = [
            path("all/", self.admin_site.admin_view(self.all_view), name=f"{self._prefix}_all"),
            path("by_error/", self.admin_site.admin_view(self.group_view), name=f"{self._prefix}_by_error"),
        ]
        own += [
            path(
                f"by_error/{verb}/",
                self.admin_site.admin_view(self.group_verb_view),
                {"verb_name": verb},
                name=f"{self._prefix}_by_error_{verb}",
            )
            for verb in self.actions
        ]
        return [*own, *super().get_urls()]

    @property
    def _prefix(self) -> str:
        return f"{self.opts.app_label}_{self.opts.model_name}"

    # By error

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Show the errors. A request with a query is redirected to the list."""
        if request.method not in _READS:
            return super().changelist_view(request, extra_context)
        if not self.has_view_permission(request):
            raise PermissionDenied
        if request.GET:
            return HttpResponseRedirect(f"{address(self, 'all')}?{request.GET.urlencode()}")
        found, more = error_groups.all_shown(self)
        title = gettext("Dead letters by error")
        context = {"found": found, "more": more, "media": LOOKS, **self._both()}
        return page(self, request, "jobqueue/admin/groups.html", title, **context)

    def all_view(self, request: HttpRequest) -> HttpResponse:
        """Show the list of all dead letters, and handle its actions."""
        return super().changelist_view(request, self._both())

    def _both(self) -> dict[str, str]:
        return {"groups_address": address(self, "changelist"), "list_address": address(self, "all")}

    def group_view(self, request: HttpRequest) -> HttpResponse:
        """Show one group: its latest failure, its newest jobs, and the verbs for all of them."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        fingerprint = request.GET.get("fingerprint", "")
        group = error_groups.one(fingerprint)
        if group is None:
            messages.info(request, gettext("No dead letter has this error."))
            return HttpResponseRedirect(address(self, "changelist"))
        query = request.GET.urlencode()
        context = {
            "media": LOOKS,
            "group": error_groups.shown(self, group),
            "lately": error_groups.lately(group),
            "failure": error_groups.latest(group),
            "jobs": error_groups.jobs(self, fingerprint),
            "verbs": [
                (VERBS[name], f"{address(self, f'by_error_{name}')}?{query}")
                for name in self.actions
                if VERBS[name].is_allowed(request)
            ],
        }
        return page(
            self, request, "jobqueue/admin/group.html", error_groups.named(group), [breadcrumb(self)], **context
        )

    def group_verb_view(self, request: HttpRequest, verb_name: str) -> HttpResponse:
        """Apply a verb to a whole group."""
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        verb = VERBS[verb_name]
        if not (verb.is_allowed(request) and self.has_view_permission(request)):
            raise PermissionDenied
        fingerprint = request.GET.get("fingerprint", "")
        if "\0" in fingerprint:
            raise BadRequest("A fingerprint holds a NUL.")
        return self.act_on(request, verb, error_groups.wanted(fingerprint))

    # One of them

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        if self.has_view_permission(request) and self._is_a_job_again(request, unquote(object_id)):
            messages.info(request, gettext("This job is no longer a dead letter."))
            return HttpResponseRedirect(self._of_the_job("change", object_id))
        return super().change_view(request, object_id, form_url, extra_context)

    def history_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        # Actions are logged under the job, which remains when it is no longer a dead letter.
        return HttpResponseRedirect(self._of_the_job("history", object_id))

    def _is_a_job_again(self, request: HttpRequest, job_id: str) -> bool:
        if "\0" in job_id or self.get_object(request, job_id) is not None:
            return False
        return bool(current().jobs.count(Filter(ids=frozenset({job_id})), 1))

    def _of_the_job(self, page: str, object_id: str) -> str:
        return reverse(f"admin:jobqueue_job_{page}", args=[object_id], current_app=self.admin_site.name)
