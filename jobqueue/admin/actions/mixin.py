"""Verbs in the admin's pages: actions of a list, buttons of a job, and the question before; each a POST of its own."""

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

from jobqueue import conf
from jobqueue.admin.actions import confirm, forms
from jobqueue.admin.actions.verbs import VERBS, Verb, operate, tell_gone
from jobqueue.admin.any_text import ReadsAnyText
from jobqueue.admin.base import entry, page
from jobqueue.admin.dashboard.snapshot import takes
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

    # What it brings to the page are files of its app.
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
        return VERBS[name].allowed(request)

    return has_permission


class ActionsMixin(ReadsAnyText, _Admin):
    """An admin of jobs with an operator's verbs; each checks its own permission where it is done."""

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
        """List what this user can do to this job."""
        offered = [VERBS[str(name)] for name in self.actions or ()]
        return [verb for verb in offered if verb.allowed(request) and verb.fits(job.status)]

    def wanted(self, request: HttpRequest) -> Filter:
        """Say what the list shows, as a filter. Raises BadQuery."""
        raise NotImplementedError

    def get_urls(self) -> list[URLPattern]:
        wrap, name = self.admin_site.admin_view, f"{self.opts.app_label}_{self.opts.model_name}"
        verbs = [str(verb) for verb in self.actions or ()]
        # Before those of a job, whose quoted id never has such an underscore.
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
        if not (verb.allowed(request) and self.has_view_permission(request)):
            raise PermissionDenied

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
        self._require(request, verb)
        if request.POST.get("select_across") == "1":
            return self.act_on(request, verb, self.wanted(request), request.get_full_path())
        rows = dict(queryset.values_list("pk", "status"))
        selected = list(dict.fromkeys(request.POST.getlist(ACTION_CHECKBOX_NAME)))
        tally = confirm.tally_of_rows(verb, list(rows.values()))
        form = forms.form_of(verb, request, answered=confirm.is_answer(request))
        if not (confirm.agreed(request, tally) and form.is_valid()):
            kept = [("action", verb.name), ("select_across", "0"), *((ACTION_CHECKBOX_NAME, one) for one in selected)]
            here = request.get_full_path()
            return self._ask(request, verb, tally, form, address=here, back=here, kept=kept, ids=list(rows))
        gone = [job_id for job_id in selected if job_id not in rows]
        operate(request, forms.order_of(verb, request, form), list(rows), gone)
        return None

    # Everything that a filter lets through

    def everything_view(self, request: HttpRequest, verb_name: str) -> HttpResponse:
        """Take the answer of the page that asks, with the filter it asked about."""
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        self._require(request, VERBS[verb_name])
        wanted, back = confirm.unsealed(request.POST.get("sealed", ""))
        return self.act_on(request, VERBS[verb_name], wanted, back)

    def act_on(self, request: HttpRequest, verb: Verb, wanted: Filter, back: str = "") -> HttpResponse:
        """Do a verb to all that a filter lets through, once the user has seen how many those are and agreed.

        Any view may call it for a POST. The page that asks posts to ``everything_view``; a few are done in the request,
        which then leads ``back`` (to the list, if nothing is said); more become a job, to whose page the user is sent.
        """
        self._require(request, verb)
        if confirm.holds_nul(wanted):
            raise BadRequest("The filter holds a NUL.")
        back = back or self._address("changelist")
        tally = confirm.tally_of_filter(verb, wanted)
        form = forms.form_of(verb, request, answered=confirm.is_answer(request))
        if not (confirm.agreed(request, tally) and form.is_valid()):
            address, kept = self._address(f"everything_{verb.name}"), [("sealed", confirm.sealed(wanted, back))]
            return self._ask(request, verb, tally, form, address=address, back=back, kept=kept)
        order = forms.order_of(verb, request, form)
        ids = [] if tally.is_large else _found(verb, wanted)
        if tally.is_large or len(ids) > BATCH:
            return self._start(request, order, wanted, back)
        operate(request, order, ids, spared=lambda job: own_kind(job, wanted))
        return HttpResponseRedirect(back)

    def _start(self, request: HttpRequest, order: Order, wanted: Filter, back: str) -> HttpResponse:
        try:
            receipt = start(order, wanted)
        except JobQueueError as error:
            messages.error(request, error_told(error))
            return HttpResponseRedirect(back)
        if receipt.created:
            messages.success(
                request, gettext("This is done in the background, by this job; its page shows how far it is.")
            )
        else:
            messages.info(request, gettext("The same is being done already, by this job."))
        if not _is_served(receipt.id):
            messages.warning(request, gettext("No live worker runs such jobs: it waits until one is started."))
        name = f"admin:{self.opts.app_label}_job_change"
        return HttpResponseRedirect(reverse(name, args=[quote(receipt.id)], current_app=self.admin_site.name))

    # One job

    def verb_view(self, request: HttpRequest, object_id: str, verb_name: str) -> HttpResponse:
        """Do one verb to one job; one that is not plain asks first."""
        verb = VERBS[verb_name]
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        self._require(request, verb)
        job_id = unquote(object_id)
        job = self.get_object(request, job_id)
        if job is None:
            tell_gone(request, verb, job_id)
            return HttpResponseRedirect(self._address("changelist"))
        tally = confirm.tally_of_rows(verb, [job.status])
        form = forms.form_of(verb, request, answered=verb.plain or confirm.is_answer(request))
        if not ((verb.plain or confirm.agreed(request, tally)) and form.is_valid()):
            here, back = self._address(verb.name, job.pk), self._address("change", job.pk)
            return self._ask(request, verb, tally, form, address=here, back=back, ids=[job.pk])
        operate(request, forms.order_of(verb, request, form), [job.pk])
        return HttpResponseRedirect(self._where_it_is(request, job))

    def _where_it_is(self, request: HttpRequest, job: Job) -> str:
        """Say where to go after a change: to the job's page, or to the list, where it has none here any more."""
        is_there = self.get_object(request, job.pk) is not None
        return self._address("change", job.pk) if is_there else self._address("changelist")

    # The question before

    def _ask(
        self,
        request: HttpRequest,
        verb: Verb,
        tally: confirm.Tally,
        form: forms.Reason,
        *,
        address: str,
        back: str,
        kept: Sequence[tuple[str, str]] = (),
        ids: Sequence[str] = (),
    ) -> HttpResponse:
        number = {"count": tally.expected, "shown": tally.shown}
        asked = verb.asked(tally.expected) % number
        question = gettext("%(question)s?") % {"question": asked}
        answer = [*kept, ("confirmed", "yes"), ("expected", str(tally.expected))]
        context = {
            "media": LOOKS,
            "verb": verb,
            "tally": tally,
            "will": verb.will(tally.expected) % number,
            "asked": asked,
            "form": form,
            "queues": form.known_queues() if isinstance(form, forms.Moving) else (),
            "in_background": tally.is_large and not ids,
            "at_once": BATCH,
            "address": address,
            "kept": answer,
            "back": back,
            "shown": ids[:IDS_SHOWN],
            "not_shown": len(ids) - IDS_SHOWN,
        }
        return page(self, request, "jobqueue/admin/confirm.html", question, [entry(self)], **context)


def _found(verb: Verb, wanted: Filter) -> list[str]:
    """Find the ids of what is meant, the oldest first; one more than a batch tells that there are more."""
    if not verb.taken(wanted):
        return []
    rows = Job.objects.using(conf.get("DATABASE"))
    return results.find(rows.all(), verb.meant(wanted), oldest_first=True)[: BATCH + 1]


def _is_served(job_id: str) -> bool:
    """Say whether a live worker takes the job that carries a large order out."""
    backend = current()
    found, now = backend.get(job_id), backend.now()
    return found is not None and any(
        takes(one, found.queue, found.type) and one.is_alive(now) for one in backend.workers()
    )
