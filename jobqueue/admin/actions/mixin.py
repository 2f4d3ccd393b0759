"""The verbs in the admin's pages: actions of a list, buttons of a job's page, and the confirmation page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from django.apps import apps
from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.utils import quote, unquote
from django.core.exceptions import BadRequest, PermissionDenied
from django.db.models import QuerySet
from django.forms import Media
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from jobqueue.admin.actions import confirm, forms
from jobqueue.admin.actions.verbs import VERBS, Verb, execute, tell_gone
from jobqueue.admin.any_text import ReadsAnyText
from jobqueue.admin.base import breadcrumb, known_queues, page
from jobqueue.admin.search import results
from jobqueue.backends import current
from jobqueue.control import BATCH
from jobqueue.errors import JobQueueError
from jobqueue.models import Job
from jobqueue.orders import Order, error_told
from jobqueue.orders.background import own_kind, start
from jobqueue.records import Filter

if TYPE_CHECKING:
    _Admin = admin.ModelAdmin[Job]
else:
    from dalf.admin import DALFModelAdmin

    # Only if it is installed: its media are static files of its app.
    _Admin = DALFModelAdmin if apps.is_installed("dalf") else admin.ModelAdmin

IDS_SHOWN = 20
LOOKS = Media(css={"all": ("admin/css/forms.css", "jobqueue/admin.css", "jobqueue/acting.css")})


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
        one = [
            path(f"<path:object_id>/{verb}/", wrap(self.verb_view), {"verb_name": verb}, name=f"{name}_{verb}")
            for verb in verbs
        ]
        return [*everything, *one, *super().get_urls()]

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
        selected = list(dict.fromkeys(request.POST.getlist(ACTION_CHECKBOX_NAME)))
        affected = confirm.affected_rows(verb, list(rows.values()))
        form = forms.form_of(verb, request, answered=confirm.is_answer(request))
        if not (confirm.agreed(request, affected) and form.is_valid()):
            kept = [("action", verb.name), ("select_across", "0"), *((ACTION_CHECKBOX_NAME, one) for one in selected)]
            here = request.get_full_path()
            return self._ask(request, verb, affected, form, address=here, back=here, kept=kept, ids=list(rows))
        gone = [job_id for job_id in selected if job_id not in rows]
        execute(request, forms.order_of(verb, request, form), list(rows), gone)
        return None

    # All jobs that match a filter

    def everything_view(self, request: HttpRequest, verb_name: str) -> HttpResponse:
        """Handle the confirmation page's answer, with the filter that it was about."""
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        self._require(request, VERBS[verb_name])
        wanted, back = confirm.unsealed(request.POST.get("sealed", ""))
        return self.act_on(request, VERBS[verb_name], wanted, back)

    def act_on(self, request: HttpRequest, verb: Verb, wanted: Filter, back: str = "") -> HttpResponse:
        """Apply a verb to all jobs that match a filter, after the user has confirmed their number.

        Any view may call this for a POST. The confirmation page posts to ``everything_view``. Up to a batch of jobs
        are changed in the request, which then redirects to ``back``, by default the list. For more jobs, a background
        job is enqueued, and the request redirects to its page.
        """
        self._require(request, verb)
        if confirm.holds_nul(wanted):
            raise BadRequest("The filter holds a NUL.")
        back = back or self._address("changelist")
        affected = confirm.affected_by_filter(verb, wanted)
        form = forms.form_of(verb, request, answered=confirm.is_answer(request))
        if not (confirm.agreed(request, affected) and form.is_valid()):
            address, kept = self._address(f"everything_{verb.name}"), [("sealed", confirm.sealed(wanted, back))]
            return self._ask(request, verb, affected, form, address=address, back=back, kept=kept)
        order = forms.order_of(verb, request, form)
        ids = [] if affected.is_large else _found(verb, wanted)
        if affected.is_large or len(ids) > BATCH:
            return self._start(request, order, wanted, back)
        execute(request, order, ids, spared=lambda job: own_kind(job, wanted))
        return HttpResponseRedirect(back)

    def _start(self, request: HttpRequest, order: Order, wanted: Filter, back: str) -> HttpResponse:
        try:
            receipt = start(order, wanted)
        except JobQueueError as error:
            messages.error(request, error_told(error))
            return HttpResponseRedirect(back)
        if receipt.created:
            messages.success(request, gettext("This job does it in the background. Its progress is shown here."))
        else:
            messages.info(request, gettext("This job is already doing the same."))
        if not _is_served(receipt.id):
            messages.warning(
                request, gettext("No live worker runs jobs of this type. The job waits until one is started.")
            )
        name = f"admin:{self.opts.app_label}_job_change"
        return HttpResponseRedirect(reverse(name, args=[quote(receipt.id)], current_app=self.admin_site.name))

    # One job

    def verb_view(self, request: HttpRequest, object_id: str, verb_name: str) -> HttpResponse:
        """Apply a verb to one job. Some verbs ask first."""
        verb = VERBS[verb_name]
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        self._require(request, verb)
        job_id = unquote(object_id)
        job = self.get_object(request, job_id)
        if job is None:
            tell_gone(request, verb, job_id)
            return HttpResponseRedirect(self._address("changelist"))
        affected = confirm.affected_rows(verb, [job.status])
        form = forms.form_of(verb, request, answered=not verb.asks_first or confirm.is_answer(request))
        if not ((not verb.asks_first or confirm.agreed(request, affected)) and form.is_valid()):
            here, back = self._address(verb.name, job.pk), self._address("change", job.pk)
            return self._ask(request, verb, affected, form, address=here, back=back, ids=[job.pk])
        execute(request, forms.order_of(verb, request, form), [job.pk])
        return HttpResponseRedirect(self._where_it_is(request, job))

    def _where_it_is(self, request: HttpRequest, job: Job) -> str:
        """Return where to go after a change: the job's page, or the list if it no longer has one here."""
        is_there = self.get_object(request, job.pk) is not None
        return self._address("change", job.pk) if is_there else self._address("changelist")

    # The confirmation page

    def _ask(
        self,
        request: HttpRequest,
        verb: Verb,
        affected: confirm.AffectedJobs,
        form: forms.ReasonForm,
        *,
        address: str,
        back: str,
        kept: Sequence[tuple[str, str]] = (),
        ids: Sequence[str] = (),
    ) -> HttpResponse:
        number = {"count": affected.expected, "shown": affected.shown}
        asked = verb.text.question(affected.expected) % number
        question = gettext("%(question)s?") % {"question": asked}
        answer = [*kept, ("confirmed", "yes"), ("expected", str(affected.expected))]
        context = {
            "media": LOOKS,
            "verb": verb,
            "affected": affected,
            "will": verb.text.effect(affected.expected) % number,
            "asked": asked,
            "form": form,
            "queues": sorted(known_queues()) if isinstance(form, forms.MoveForm) else (),
            "in_background": affected.is_large and not ids,
            "at_once": BATCH,
            "address": address,
            "kept": answer,
            "back": back,
            "shown": ids[:IDS_SHOWN],
            "not_shown": len(ids) - IDS_SHOWN,
        }
        return page(self, request, "jobqueue/admin/confirm.html", question, [breadcrumb(self)], **context)


def _found(verb: Verb, wanted: Filter) -> list[str]:
    """Find the ids of the jobs, the oldest first, up to one more than a batch."""
    if not verb.statuses_in(wanted):
        return []
    return results.find(verb.narrowed(wanted), oldest_first=True)[: BATCH + 1]


def _is_served(job_id: str) -> bool:
    """Return whether a live worker takes the job of a large order."""
    backend = current()
    found, now = backend.jobs.get(job_id), backend.now()
    return found is not None and any(
        one.takes(found.queue, found.type) and one.is_alive(now) for one in backend.workers.all()
    )
