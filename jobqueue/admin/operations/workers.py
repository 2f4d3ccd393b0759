"""The workers in the admin: a list, and a page for each with its jobs, where it can be quieted and stopped."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.admin.utils import quote, unquote
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.urls import URLPattern, path
from django.utils.decorators import method_decorator
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_safe

from jobqueue import conf, control
from jobqueue.admin import live
from jobqueue.admin.actions.forms import ReasonForm
from jobqueue.admin.base import address, breadcrumb, page
from jobqueue.admin.operations import duty_rows, worker_rows
from jobqueue.backends import current
from jobqueue.errors import JobQueueError
from jobqueue.models import Worker
from jobqueue.orders import error_told, together
from jobqueue.records import WorkerRequest
from jobqueue.records.worker import NEWS_EVERY, is_recent

MAY_CONTROL = "jobqueue.control_worker"
REQUESTS = {"quiet": WorkerRequest.QUIET, "resume": None, "stop": WorkerRequest.STOP}

LABELS: dict[str, Any] = {"quiet": _("Take no more jobs"), "resume": _("Take jobs again"), "stop": _("Stop")}
TITLES: dict[str, Any] = {
    "quiet": _("Let the worker %(name)s take no more jobs?"),
    "resume": _("Let the worker %(name)s take jobs again?"),
    "stop": _("Stop the worker %(name)s?"),
}
LOGGED: dict[str, Any] = {
    "quiet": _("Asked to take no more jobs"),
    "resume": _("Asked to take jobs again"),
    "stop": _("Asked to stop"),
}
DONE: dict[str, Any] = {
    "quiet": _("The worker %(name)s will stop taking jobs within %(seconds)d seconds. Its running jobs continue."),
    "resume": _("The worker %(name)s will take jobs again within %(seconds)d seconds."),
    "stop": _("The worker %(name)s will begin to stop within %(seconds)d seconds."),
}


@admin.register(Worker)
class WorkerAdmin(live.LivePageAdmin):
    """The pages of the workers."""

    def get_urls(self) -> list[URLPattern]:
        name, wrap = f"{self.opts.app_label}_{self.opts.model_name}", self.admin_site.admin_view
        return [
            path("", wrap(self.changelist_view), name=f"{name}_changelist"),
            path("live/", wrap(self.live_view), name=f"{name}_live"),
            path("<path:object_id>/change/", wrap(self.change_view), name=f"{name}_change"),
            path("<path:object_id>/change/live/", wrap(self.change_live_view), name=f"{name}_change_live"),
            *(
                path(f"<path:object_id>/{verb}/", wrap(self.control_view), {"verb": verb}, name=f"{name}_{verb}")
                for verb in REQUESTS
            ),
        ]

    # All of them

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Show all workers, with warnings."""
        self.require(request)
        shown = self._all()
        context = {**shown, **live.frame(address(self, "live"), "?", shown["now"])}
        return page(self, request, "jobqueue/admin/parts.html", gettext("Workers"), **context)

    @method_decorator(require_safe)
    def live_view(self, request: HttpRequest) -> HttpResponse:
        """Return the list of workers if it has changed."""
        self.require(request)
        shown = self._all()
        return live.changes(request, shown["now"], shown["parts"])

    def _all(self) -> dict[str, Any]:
        now = current().now()
        rows, more = worker_rows.newest()
        held = worker_rows.holdings()
        shown = {
            "workers": [worker_rows.shown(self, one, held.get(one.owner, worker_rows.Holding()), now) for one in rows],
            "more": more,
            "duties": duty_rows.all_of(rows),
            "notices": worker_rows.notices(rows, held, now, all_known=not more),
        }
        return {**shown, "now": now, "parts": [live.part("workers", "worker_table", shown)]}

    # One of them

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show one worker and its jobs."""
        self.require(request)
        worker = _find(unquote(object_id))
        if worker is None:
            return self._gone(request)
        shown, owner = self._one(request, worker), quote(worker.owner)
        frame = live.frame(address(self, "change_live", owner), "?", shown["now"])
        title = gettext("Worker %(name)s") % {"name": worker.name}
        return page(self, request, "jobqueue/admin/parts.html", title, [breadcrumb(self)], **shown, **frame)

    @method_decorator(require_safe)
    def change_live_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Return the parts of a worker's page that have changed. A worker that is gone has no news."""
        self.require(request)
        worker = _find(unquote(object_id))
        if worker is None:
            return live.changes(request, current().now(), [live.part("worker", "worker_gone", {})])
        shown = self._one(request, worker)
        return live.changes(request, shown["now"], shown["parts"])

    def _one(self, request: HttpRequest, worker: Worker) -> dict[str, Any]:
        now = current().now()
        jobs, more = worker_rows.runs(self, worker.owner, now)
        held = _held_by(worker)
        row = worker_rows.shown(self, worker, held, now)
        verbs = row.verbs if request.user.has_perm(MAY_CONTROL) else ()
        shown = {
            "worker": row,
            "verbs": [(verb, LABELS[verb], address(self, verb, quote(worker.owner))) for verb in verbs],
            "all_types": ", ".join(worker_rows.texts(worker.types)),
            "jobs": jobs,
            "more": more,
            "notices": [] if is_recent(worker.seen_at, now) else [worker_rows.silence(worker, held, now)],
        }
        return {**shown, "now": now, "parts": [live.part("worker", "worker_facts", shown)]}

    def _gone(self, request: HttpRequest) -> HttpResponse:
        words = gettext("This worker is gone: it ended, or was silent for a day. Its jobs are not lost.")
        messages.info(request, words)
        return HttpResponseRedirect(address(self, "changelist"))

    def control_view(self, request: HttpRequest, object_id: str, verb: str) -> HttpResponse:
        """Explain what is asked of a worker, take the reason, and ask it."""
        self.require(request, MAY_CONTROL)
        if request.method not in ("GET", "HEAD", "POST"):
            return HttpResponseNotAllowed(["GET", "POST"])
        worker = _find(unquote(object_id))
        if worker is None:
            return self._gone(request)
        form, back = ReasonForm(request.POST if request.method == "POST" else None), quote(worker.owner)
        if form.is_valid():
            _ask(request, verb, worker, form.cleaned_data["why"])
            return HttpResponseRedirect(address(self, "change", back))
        context = {
            "verb": verb,
            "label": LABELS[verb],
            "form": form,
            "worker": worker_rows.shown(self, worker, _held_by(worker), current().now()),
            "back": address(self, "change", back),
        }
        title = TITLES[verb] % {"name": worker.name}
        return page(self, request, "jobqueue/admin/worker_control.html", title, [breadcrumb(self)], **context)


def _ask(request: HttpRequest, verb: str, worker: Worker, why: str) -> None:
    """Ask a worker, log it, and add a message."""
    said = f"{LOGGED[verb]}: {why}" if why else f"{LOGGED[verb]}."
    try:
        with together():
            if is_there := control.ask_worker(worker.owner, REQUESTS[verb]):
                target = Worker(pk=worker.owner, name=worker.name)
                LogEntry.objects.log_actions(request.user.pk, [target], CHANGE, said)  # type: ignore[arg-type]
    except JobQueueError as error:
        messages.error(request, error_told(error))
        return
    if not is_there:
        messages.info(request, gettext("This worker is gone."))
        return
    told = {"name": worker.name, "seconds": NEWS_EVERY.total_seconds()}
    messages.success(request, DONE[verb] % told)


def _held_by(worker: Worker) -> worker_rows.Holding:
    return worker_rows.holdings().get(worker.owner, worker_rows.Holding())


def _find(owner: str) -> Worker | None:
    # Postgres rejects texts with a NUL.
    return None if "\0" in owner else Worker.objects.using(conf.get("DATABASE")).filter(pk=owner).first()
