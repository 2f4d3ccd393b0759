"""The dead letters in the admin: by error and as a list, to be retried or purged."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.contrib import admin, messages
from django.contrib.admin.utils import quote, unquote
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
from jobqueue.handlers.registry import registry
from jobqueue.models import DeadLetter
from jobqueue.records import ErrorGroup, Filter

_READS = ("GET", "HEAD")
#: The query of the page of errors. Any other query is the list's.
_OF_ERRORS = {"of", "text", "order"}


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
            path(
                "by_error/retry_one/",
                self.admin_site.admin_view(self.retry_one_view),
                name=f"{self._prefix}_by_error_retry_one",
            ),
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
    def list_address(self) -> str:
        return address(self, "all")

    @property
    def _prefix(self) -> str:
        return f"{self.opts.app_label}_{self.opts.model_name}"

    # By error

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Show the errors. A request with the query of a list is redirected to it."""
        if request.method not in _READS:
            return super().changelist_view(request, extra_context)
        if not self.has_view_permission(request):
            raise PermissionDenied
        if set(request.GET) - _OF_ERRORS:
            return HttpResponseRedirect(f"{address(self, 'all')}?{request.GET.urlencode()}")
        wanted = error_groups.asked(request.GET)
        found, more = error_groups.all_shown(self, wanted)
        title = gettext("Dead letters by error")
        context = {
            "found": found,
            "more": more,
            "wanted": wanted,
            "types": sorted({*registry.names, wanted.type, *(one.type for one in found)} - {""}),
            "orders": error_groups.ORDER_LABELS.items(),
            "may_retry": VERBS["retry"].is_allowed(request),
            "narrow": wanted.is_narrow,
            "media": LOOKS,
            **self._both(),
        }
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
        group, tried = error_groups.one(fingerprint), request.GET.get("tried", "")
        state = error_groups.state_of(tried)
        if group is None and state:
            return HttpResponseRedirect(self._of_the_job("change", quote(tried)))
        if group is None:
            messages.info(request, gettext("No dead letter has this error."))
            return HttpResponseRedirect(address(self, "changelist"))
        return page(
            self,
            request,
            "jobqueue/admin/group.html",
            error_groups.named(group),
            [breadcrumb(self)],
            tried=state
            and {"address": self._of_the_job("change", quote(tried)), "status": state[0], "label": state[1]},
            here=request.get_full_path(),
            **self._of_group(request, group),
        )

    def _of_group(self, request: HttpRequest, group: ErrorGroup) -> dict[str, Any]:
        query = urlencode({"fingerprint": group.fingerprint}, errors="replace")
        shares, shares_of = error_groups.shares(group.fingerprint)
        return {
            "media": LOOKS,
            "group": error_groups.shown(self, group),
            "lately": error_groups.lately(group),
            "failure": error_groups.latest(group),
            "grouping": error_groups.grouping(group),
            "releases": error_groups.releases(group),
            "shares": shares,
            "shares_of": shares_of,
            "jobs": error_groups.jobs(self, group.fingerprint),
            "retry_one": f"{address(self, 'by_error_retry_one')}?{query}",
            "verbs": [
                (VERBS[name], f"{address(self, f'by_error_{name}')}?{query}")
                for name in self.actions
                if VERBS[name].is_allowed(request)
            ],
        }

    def group_verb_view(self, request: HttpRequest, verb_name: str) -> HttpResponse:
        """Ask whether to apply a verb to a whole group. A link to the question survives signing in."""
        if request.method not in ("GET", "POST"):
            return HttpResponseNotAllowed(["GET", "POST"])
        verb = VERBS[verb_name]
        if not (verb.is_allowed(request) and self.has_view_permission(request)):
            raise PermissionDenied
        fingerprint = request.GET.get("fingerprint", "")
        if "\0" in fingerprint:
            raise BadRequest("A fingerprint holds a NUL.")
        back = f"{address(self, 'by_error')}?{request.GET.urlencode()}"
        return self.act_on(request, verb, error_groups.wanted(fingerprint), back)

    def retry_one_view(self, request: HttpRequest) -> HttpResponse:
        """Retry the newest job of a group, and show the group with what becomes of the job."""
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        self._require(request, VERBS["retry"])
        fingerprint = request.GET.get("fingerprint", "")
        group = error_groups.one(fingerprint)
        if group is None:
            messages.info(request, gettext("No dead letter has this error."))
            return HttpResponseRedirect(address(self, "changelist"))
        self.verb_view(request, quote(group.newest_id), "retry")
        query = urlencode({"fingerprint": fingerprint, "tried": group.newest_id})
        return HttpResponseRedirect(f"{address(self, 'by_error')}?{query}")

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
