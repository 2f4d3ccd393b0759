"""The page of a job in the admin, and the view that it polls for changes while the job runs."""

from __future__ import annotations

from typing import Any

from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.forms import Media, Script
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, JsonResponse
from django.urls import URLPattern, path
from django.utils.translation import gettext

from jobqueue.admin import display
from jobqueue.admin.actions.enqueue import Enqueue
from jobqueue.admin.actions.verbs import Verb
from jobqueue.admin.base import ATTENTION, LOOKS, breadcrumb, page
from jobqueue.admin.job import raw_row
from jobqueue.admin.job.detail import Detail
from jobqueue.admin.job.history import history_of
from jobqueue.admin.links import Links
from jobqueue.models import Job

# Not a sum of media: Django compares their scripts by address, which settings may not have yet when this is loaded.
OF_JOB = Media(
    css={"all": ["jobqueue/job.css"]},
    js=[ATTENTION, Script("jobqueue/job.js", defer=True)],  # type: ignore[list-item]
)
#: Longer than any key of the log.
MOST_DIGITS = 19


class JobPage(Enqueue):
    """An admin with a page for each job."""

    change_form_template = "jobqueue/admin/job.html"
    readonly_fields = raw_row.EVERY_FIELD

    def get_urls(self) -> list[URLPattern]:
        name = f"{self.opts.app_label}_{self.opts.model_name}_live"
        live = path("<path:object_id>/live/", self.admin_site.admin_view(self.live_view), name=name)
        return [live, *super().get_urls()]

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Job | None:
        # Postgres rejects texts with a NUL.
        return None if "\0" in object_id else super().get_object(request, object_id, from_field)

    def get_fieldsets(self, request: HttpRequest, obj: Job | None = None) -> Any:
        return raw_row.fieldsets(obj) if obj else []

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
            detail = Detail(obj, self.admin_site.name)
            verbs, addresses = self._offered(request, obj), self._addresses(request, obj)
            context |= {
                "media": context["media"] + OF_JOB,
                "verbs": verbs,
                "addresses": addresses,
                "parts": detail.parts(verbs, addresses),
                "payloads": detail.payloads(),
                "live": "" if detail.is_over else self._address("live", obj.pk),
            }
        return super().render_change_form(request, context, add, change, form_url, obj)

    def history_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show what operators did, page by page. Django's own view would read its whole log."""
        job = self.get_object(request, unquote(object_id))
        if job is None:
            gone: HttpResponse = self._get_obj_does_not_exist_redirect(request, self.opts, object_id)  # type: ignore[attr-defined]
            return gone
        if not self.has_view_permission(request, job):
            raise PermissionDenied
        below = request.GET.get("below", "")
        seen = int(below) if below.isascii() and below.isdecimal() and len(below) < MOST_DIGITS else None
        actions = history_of(job, lambda: Detail(job, self.admin_site.name).secrets, seen)
        trail = [breadcrumb(self), (self._address("change", job.pk), str(job))]
        links = Links(self.admin_site.name)
        context = {
            "media": LOOKS,
            "actions": actions,
            "rows": [(one, links.order(one.order) if one.order else "") for one in actions.found],
            "back_to": actions.back_to and display.exactly(actions.back_to),
            "is_first": seen is None,
            **(extra_context or {}),
        }
        return page(self, request, "jobqueue/admin/history.html", gettext("History"), trail, **context)

    def live_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Return the parts of a job's page as JSON; the timeline only if it has changed."""
        if request.method not in ("GET", "HEAD"):
            return HttpResponseNotAllowed(["GET", "HEAD"])
        if not self.has_view_permission(request):
            raise PermissionDenied
        job = self.get_object(request, unquote(object_id))
        if job is None:
            return _answer({"gone": gettext("This job is gone.")}, status=404)
        detail = Detail(job, self.admin_site.name)
        parts = detail.parts(self._offered(request, job), self._addresses(request, job), request.GET.get("token", ""))
        known = {"status": job.status, "said": detail.said, "is_over": detail.is_over, "token": detail.token}
        return _answer({**known, "parts": parts})

    def _addresses(self, request: HttpRequest, job: Job) -> dict[str, str]:
        return {"edit": self.edit_address(request, job), "again": self.again_address(request, job)}

    def _offered(self, request: HttpRequest, job: Job) -> list[tuple[Verb, str]]:
        return [(verb, self._address(verb.name, job.pk)) for verb in self.verbs_for(request, job)]


def _answer(data: dict[str, Any], status: int = 200) -> HttpResponse:
    return JsonResponse(data, status=status, headers={"Cache-Control": "no-store"})
