"""Verbs in the admin's pages: actions of a list, buttons of a job, and the question before what cannot be undone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from django.apps import apps
from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.utils import quote, unquote
from django.core.exceptions import BadRequest, PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from jobqueue.admin.listing import CAP
from jobqueue.admin.verbs import VERBS, Verb, operate
from jobqueue.models import Job
from jobqueue.models.job import STATUS_LABELS

if TYPE_CHECKING:
    _Admin = admin.ModelAdmin[Job]
else:
    from dalf.admin import DALFModelAdmin

    # What it brings to the page are files of its app.
    _Admin = DALFModelAdmin if apps.is_installed("dalf") else admin.ModelAdmin

SHOWN_BEFORE_PURGE = 20


class Acting(_Admin):
    """An admin of jobs with an operator's verbs; each checks its own permission where it is done."""

    @admin.action(description=_("Retry selected jobs"), permissions=["retry"])
    def retry(self, request: HttpRequest, queryset: QuerySet[Job]) -> HttpResponse | None:
        return self._act(request, VERBS["retry"], queryset)

    @admin.action(description=_("Cancel selected jobs"), permissions=["cancel"])
    def cancel(self, request: HttpRequest, queryset: QuerySet[Job]) -> HttpResponse | None:
        return self._act(request, VERBS["cancel"], queryset)

    @admin.action(description=_("Purge selected jobs"), permissions=["purge"])
    def purge(self, request: HttpRequest, queryset: QuerySet[Job]) -> HttpResponse | None:
        return self._act(request, VERBS["purge"], queryset)

    def has_retry_permission(self, request: HttpRequest) -> bool:
        return VERBS["retry"].allowed(request)

    def has_cancel_permission(self, request: HttpRequest) -> bool:
        return VERBS["cancel"].allowed(request)

    def has_purge_permission(self, request: HttpRequest) -> bool:
        return VERBS["purge"].allowed(request)

    def verbs_for(self, request: HttpRequest, job: Job) -> list[Verb]:
        """List what this user can do to this job."""
        offered = [VERBS[str(name)] for name in self.actions or ()]
        return [verb for verb in offered if verb.allowed(request) and verb.fits(job.status)]

    # The list

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        # Django would call an action without permission no action at all, and send the user back as if it had been one.
        for name in request.POST.getlist("action"):
            if name in VERBS and not VERBS[name].allowed(request):
                raise PermissionDenied
        if any("\0" in job_id for job_id in request.POST.getlist(ACTION_CHECKBOX_NAME)):
            raise BadRequest("An id holds a NUL.")
        return super().changelist_view(request, extra_context)

    def _act(self, request: HttpRequest, verb: Verb, queryset: QuerySet[Job]) -> HttpResponse | None:
        if not (verb.allowed(request) and self.has_view_permission(request)):
            raise PermissionDenied
        across = request.POST.get("select_across") == "1"
        rows = list(queryset.values_list("pk", "status")[: CAP + 1])
        ids = [job_id for job_id, _status in rows[:CAP]]
        if verb.destroys and not _confirmed(request, len(rows)):
            return self._ask(request, verb, rows, across)
        selected = [] if across else request.POST.getlist(ACTION_CHECKBOX_NAME)
        known = set(ids)
        operate(request, verb, ids, [job_id for job_id in dict.fromkeys(selected) if job_id not in known])
        if len(rows) > CAP:
            left = gettext("At most %(count)d jobs are handled at once; repeat the action for the others.")
            messages.warning(request, left % {"count": CAP})
        return None

    # One job

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.verb_view)
        name = f"{self.opts.app_label}_{self.opts.model_name}"
        own = [
            path(f"<path:object_id>/{verb}/", view, {"verb_name": verb}, name=f"{name}_{verb}")
            for verb in map(str, self.actions or ())
        ]
        return [*own, *super().get_urls()]

    def verb_view(self, request: HttpRequest, object_id: str, verb_name: str) -> HttpResponse:
        """Do one verb to one job."""
        verb = VERBS[verb_name]
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        if not (verb.allowed(request) and self.has_view_permission(request)):
            raise PermissionDenied
        job_id = unquote(object_id)
        job = self.get_object(request, job_id)
        if job is None:
            operate(request, verb, [], [job_id])
            return HttpResponseRedirect(self._address("changelist"))
        if verb.destroys and not _confirmed(request, 1):
            return self._ask(request, verb, [(job.pk, job.status)], across=False, job=job)
        operate(request, verb, [job.pk])
        if self.get_object(request, job.pk) is None:
            return HttpResponseRedirect(self._address("changelist"))
        return HttpResponseRedirect(self._address("change", job.pk))

    def _address(self, page: str, *ids: str) -> str:
        name = f"admin:{self.opts.app_label}_{self.opts.model_name}_{page}"
        return reverse(name, args=[quote(job_id) for job_id in ids], current_app=self.admin_site.name)

    # The question before

    def _ask(
        self, request: HttpRequest, verb: Verb, rows: Sequence[tuple[str, str]], across: bool, job: Job | None = None
    ) -> HttpResponse:
        counts = Counter(status for _id, status in rows[:CAP])
        ids = [job_id for job_id, _status in rows[:CAP]]
        context = {
            **self.admin_site.each_context(request),
            "title": gettext("Purge jobs?"),
            "opts": self.opts,
            "media": self.media,
            "verb": verb,
            "count": len(ids),
            "capped": len(rows) > CAP,
            "by_status": [(label, counts[status]) for status, label in STATUS_LABELS if counts[status]],
            "left_alone": sum(counts[status] for status in counts if not verb.fits(status)),
            "expected": len(rows),
            "ids": ids[:1] if across else ids,
            "shown": ids[:SHOWN_BEFORE_PURGE],
            "not_shown": len(ids) - SHOWN_BEFORE_PURGE,
            "across": across,
            "object": job,
            "back": self._address("change", job.pk) if job else request.get_full_path(),
            "base": f"admin/{'delete' if job else 'delete_selected'}_confirmation.html",
            "checkbox": ACTION_CHECKBOX_NAME,
        }
        request.current_app = self.admin_site.name
        return TemplateResponse(request, "jobqueue/admin/confirm.html", context)


def _confirmed(request: HttpRequest, found: int) -> bool:
    """Say whether the user agreed to at least as many as there are now."""
    expected = request.POST.get("expected", "")
    counted = int(expected) if expected.isdecimal() and len(expected) < 10 else 0  # no digits without end
    return request.POST.get("confirmed") == "yes" and found <= counted
