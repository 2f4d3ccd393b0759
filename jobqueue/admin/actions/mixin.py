"""The verbs in the admin's pages: actions of a list, buttons of a job's page, and the way to the question."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from django.apps import apps
from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.utils import quote, unquote
from django.core.exceptions import BadRequest, PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext_lazy as _

from jobqueue.admin.actions import forms
from jobqueue.admin.actions.confirm import holds_nul
from jobqueue.admin.actions.question import LOOKS, Question
from jobqueue.admin.actions.verbs import VERBS, Verb, act_on_one, tell_gone
from jobqueue.admin.any_text import ReadsAnyText
from jobqueue.admin.search.combine import BadQuery
from jobqueue.errors import JobQueueError
from jobqueue.models import Job, Order
from jobqueue.orders import error_told
from jobqueue.orders.selection import ask, ask_for
from jobqueue.records import Filter

__all__ = ["LOOKS", "ActionsMixin"]

if TYPE_CHECKING:
    _Admin = admin.ModelAdmin[Job]
else:
    from dalf.admin import DALFModelAdmin

    # Only if it is installed: its media are static files of its app.
    _Admin = DALFModelAdmin if apps.is_installed("dalf") else admin.ModelAdmin

#: A question is asked after either; a link to it survives signing in.
_ASKS = ("GET", "POST")


def _action(name: str, description: Any) -> Callable[..., HttpResponse | None]:
    @admin.action(description=description, permissions=[name])
    def act(self: ActionsMixin, request: HttpRequest, queryset: QuerySet[Job]) -> HttpResponse | None:
        return self._act(request, VERBS[name], queryset)

    act.__name__ = name
    return act


def _permission(name: str) -> Callable[..., bool]:
    def has_permission(_self: ActionsMixin, request: HttpRequest) -> bool:
        return VERBS[name].is_allowed(request)

    return has_permission


class ActionsMixin(ReadsAnyText, _Admin):
    """An admin of jobs with an operator's verbs. Each request checks the verb's permission."""

    retry = _action("retry", _("Retry selected jobs"))
    run_now = _action("run_now", _("Run selected jobs now"))
    reschedule = _action("reschedule", _("Reschedule selected jobs"))
    prioritise = _action("prioritise", _("Change the priority of selected jobs"))
    move = _action("move", _("Move selected jobs to another queue"))
    cancel = _action("cancel", _("Cancel selected jobs"))
    purge = _action("purge", _("Purge selected jobs"))

    has_retry_permission = _permission("retry")
    has_run_now_permission = _permission("run_now")
    has_reschedule_permission = _permission("reschedule")
    has_prioritise_permission = _permission("prioritise")
    has_move_permission = _permission("move")
    has_cancel_permission = _permission("cancel")
    has_purge_permission = _permission("purge")

    def verbs_for(self, request: HttpRequest, job: Job) -> list[Verb]:
        """List the verbs that this user can use on this job."""
        offered = [VERBS[str(name)] for name in self.actions or ()]
        return [verb for verb in offered if verb.is_allowed(request) and verb.accepts(job.status)]

    def wanted(self, request: HttpRequest) -> Filter:
        """Return the filter of the list. Raises BadQuery."""
        raise NotImplementedError

    def get_urls(self) -> list[URLPattern]:
        wrap, name = self.admin_site.admin_view, f"{self.opts.app_label}_{self.opts.model_name}"
        verbs = [str(verb) for verb in self.actions or ()]
        # Before the URLs of a job: a quoted id never begins with this underscore.
        everything = [
            path(
                f"_everything/{verb}/",
                wrap(self.everything_view),
                {"verb_name": verb},
                name=f"{name}_everything_{verb}",
            )
            for verb in verbs
        ]
        question = path("_question/<str:order_id>/", wrap(self.question_view), name=f"{name}_question")
        one = [
            path(f"<path:object_id>/{verb}/", wrap(self.verb_view), {"verb_name": verb}, name=f"{name}_{verb}")
            for verb in verbs
        ]
        return [*everything, question, *one, *super().get_urls()]

    def _address(self, page: str, *ids: str) -> str:
        name = f"admin:{self.opts.app_label}_{self.opts.model_name}_{page}"
        return reverse(name, args=[quote(job_id) for job_id in ids], current_app=self.admin_site.name)

    def _require(self, request: HttpRequest, verb: Verb) -> None:
        if not (verb.is_allowed(request) and self.has_view_permission(request)):
            raise PermissionDenied

    # The list

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        # Django ignores an action without permission, and redirects as if nothing was wrong.
        for name in request.POST.getlist("action"):
            if name in VERBS and not VERBS[name].is_allowed(request):
                raise PermissionDenied
        if any("\0" in job_id for job_id in request.POST.getlist(ACTION_CHECKBOX_NAME)):
            raise BadRequest("An id holds a NUL.")
        return super().changelist_view(request, extra_context)

    def _act(self, request: HttpRequest, verb: Verb, queryset: QuerySet[Job]) -> HttpResponse | None:
        self._require(request, verb)
        if request.POST.get("select_across") == "1":
            return self.act_on(request, verb, self.wanted(request), request.get_full_path())
        rows = dict(queryset.values_list("pk", "status"))
        gone = [one for one in dict.fromkeys(request.POST.getlist(ACTION_CHECKBOX_NAME)) if one not in rows]
        back = request.get_full_path()
        return self._ask(request, lambda: ask_for(forms.instruction(verb, request), rows, gone, back), back)

    # All jobs that match a filter

    def everything_view(self, request: HttpRequest, verb_name: str) -> HttpResponse:
        """Ask whether to apply a verb to all jobs that match the list's query in the address, shown or not."""
        if request.method not in _ASKS:
            return HttpResponseNotAllowed(_ASKS)
        self._require(request, VERBS[verb_name])
        back = f"{self._address('changelist')}?{request.GET.urlencode()}"
        try:
            return self.act_on(request, VERBS[verb_name], self.wanted(request), back)
        except BadQuery as error:
            messages.error(request, str(error))
            return HttpResponseRedirect(back)

    def act_on(self, request: HttpRequest, verb: Verb, wanted: Filter, back: str = "") -> HttpResponse:
        """Ask whether to apply a verb to all jobs that match a filter. ``back`` is by default the list.

        Any view may call this, also for a GET: it only redirects to the page that counts the jobs and asks.
        """
        self._require(request, verb)
        if holds_nul(wanted):
            raise BadRequest("The filter holds a NUL.")
        back = back or self._address("changelist")
        return self._ask(request, lambda: ask(forms.instruction(verb, request), wanted, back), back)

    def _ask(self, request: HttpRequest, make: Callable[[], Order], back: str) -> HttpResponse:
        try:
            return HttpResponseRedirect(self._question_address(make()))
        except JobQueueError as error:
            messages.error(request, error_told(error))
            return HttpResponseRedirect(back)

    def _question_address(self, order: Order) -> str:
        return self._address("question", order.pk)

    def question_view(self, request: HttpRequest, order_id: str) -> HttpResponse:
        """Count the jobs of an order and ask whether to carry it out. Only the answer is a POST."""
        if request.method not in (*_ASKS, "HEAD"):
            return HttpResponseNotAllowed(_ASKS)
        return Question(self, request, order_id).response()

    # One job

    def verb_view(self, request: HttpRequest, object_id: str, verb_name: str) -> HttpResponse:
        """Apply a verb to one job. Some verbs ask first, and so does each that was followed as a link."""
        verb = VERBS[verb_name]
        if request.method not in _ASKS:
            return HttpResponseNotAllowed(_ASKS)
        self._require(request, verb)
        job_id = unquote(object_id)
        job = self.get_object(request, job_id)
        if job is None:
            tell_gone(request, verb, job_id)
            return HttpResponseRedirect(self._address("changelist"))
        form = forms.form_of_verb(verb, request.POST)
        if request.method == "POST" and not verb.asks_first and form.is_valid():
            act_on_one(request, forms.instruction(verb, request, form), job)
            return HttpResponseRedirect(self._where_it_is(request, job))
        back = self._address("changelist") if verb.deletes else self._address("change", job.pk)
        given = forms.instruction(verb, request)
        answer = self._ask(request, lambda: ask_for(given, {job.pk: job.status}, (), back), back)
        if why := request.POST.get("why", ""):
            answer["Location"] = f"{answer['Location']}?{urlencode({'why': why}, errors='replace')}"
        return answer

    def _where_it_is(self, request: HttpRequest, job: Job) -> str:
        """Return where to go after a change: the job's page, or the list if it no longer has one here."""
        is_there = self.get_object(request, job.pk) is not None
        return self._address("change", job.pk) if is_there else self._address("changelist")
