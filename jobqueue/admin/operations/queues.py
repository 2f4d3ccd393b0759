"""The queues in the admin: their jobs, and the pauses of queues and job types."""

from __future__ import annotations

from typing import Any, NamedTuple

from django.contrib import admin, messages
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.contenttypes.models import ContentType
from django.core.exceptions import BadRequest
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.urls import URLPattern, path
from django.utils.decorators import method_decorator
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_safe

from jobqueue import control
from jobqueue.admin import display, live
from jobqueue.admin.actions.forms import ReasonForm
from jobqueue.admin.base import address, breadcrumb, page
from jobqueue.admin.operations import limit_rows, limits, queue_rows
from jobqueue.admin.operations.queue_page import QueuePage
from jobqueue.backends import current
from jobqueue.errors import JobQueueError
from jobqueue.handlers.options import NAME_LENGTH
from jobqueue.models import Queue
from jobqueue.observe.metrics import depths
from jobqueue.orders import error_told, together
from jobqueue.records import PauseRecord, Scope

MAY_PAUSE = "jobqueue.pause_queue"
CHANGES_SHOWN = 10


@admin.register(Queue)
class QueueAdmin(live.LivePageAdmin):
    """One page with the queues and their types, one for each queue, and pages to pause, resume and limit them."""

    def get_urls(self) -> list[URLPattern]:
        name, wrap = f"{self.opts.app_label}_{self.opts.model_name}", self.admin_site.admin_view
        return [
            path("", wrap(self.changelist_view), name=f"{name}_changelist"),
            path("live/", wrap(self.live_view), name=f"{name}_live"),
            path("one/", wrap(self.one_view), name=f"{name}_one"),
            path("one/live/", wrap(self.one_live_view), name=f"{name}_one_live"),
            path("pause/", wrap(self.steer_view), {"verb": "pause"}, name=f"{name}_pause"),
            path("resume/", wrap(self.steer_view), {"verb": "resume"}, name=f"{name}_resume"),
            path("limit/", wrap(self.limit_view), {"verb": "set"}, name=f"{name}_limit"),
            path("unlimit/", wrap(self.limit_view), {"verb": "unset"}, name=f"{name}_unlimit"),
        ]

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Show the queues and the types."""
        self.require(request)
        seen = queue_rows.look()
        context = {
            **self._tables(request, seen),
            **live.frame(address(self, "live"), "?", seen.now),
            "seen": seen,
            "changes": _changes(),
        }
        return page(self, request, "jobqueue/admin/queues.html", gettext("Queues"), **context)

    @method_decorator(require_safe)
    def live_view(self, request: HttpRequest) -> HttpResponse:
        """Return the tables that have changed."""
        self.require(request)
        seen = queue_rows.look()
        return live.changes(request, seen.now, self._tables(request, seen)["parts"])

    def _tables(self, request: HttpRequest, seen: queue_rows.Seen) -> dict[str, Any]:
        queues, types = queue_rows.queues(self, seen), queue_rows.types(self, seen)
        shared = _may(request)
        names = [row.name for row in queues]
        parts = [
            live.part("queues", "queue_table", {**shared, "rows": queues, "label": gettext("Queues")}),
            live.part(
                "types", "queue_table", {**shared, "rows": types, "is_types": True, "label": gettext("Job types")}
            ),
            live.part("limits", "limit_table", {**shared, "rows": limit_rows.rows(self, names)}),
        ]
        return {"queues": queues, "types": types, "parts": parts}

    # One queue

    @method_decorator(require_safe)
    def one_view(self, request: HttpRequest) -> HttpResponse:
        """Show one queue: what waits now, and what waited over time."""
        self.require(request)
        found = QueuePage.of(request.GET)
        if not found.name:
            return HttpResponseRedirect(address(self, "changelist"))
        context = {
            "parts": found.parts(self, **_may(request)),
            "windows": found.windows(self),
            **live.frame(found.address(self, "one_live"), found.address(self, "one"), found.seen.now),
        }
        title = gettext("Queue %(name)s") % {"name": found.name}
        return page(self, request, "jobqueue/admin/queue.html", title, [breadcrumb(self)], **context)

    @method_decorator(require_safe)
    def one_live_view(self, request: HttpRequest) -> HttpResponse:
        """Return the parts of a queue's page that have changed."""
        self.require(request)
        found = QueuePage.of(request.GET)
        return live.changes(request, found.seen.now, found.parts(self, **_may(request)))

    # Limits

    def limit_view(self, request: HttpRequest, verb: str) -> HttpResponse:
        """Set or unset a limit of a queue or type."""
        self.require(request, limits.MAY_SET)
        view = limits.set_view if verb == "set" else limits.unset_view
        return view(self, request, *_target(request))

    # Pauses

    def steer_view(self, request: HttpRequest, verb: str) -> HttpResponse:
        """Explain a pause or its end, ask for the reason, and carry it out."""
        self.require(request, MAY_PAUSE)
        if request.method not in ("GET", "HEAD", "POST"):
            return HttpResponseNotAllowed(["GET", "POST"])
        scope, name = _target(request)
        form = ReasonForm(request.POST if request.method == "POST" else None)
        form.fields["why"].required = verb == "pause"
        if form.is_valid():
            _steer(request, verb, scope, name, form.cleaned_data["why"])
            return HttpResponseRedirect(address(self, "changelist"))
        concerned = [one for one in depths() if name == {Scope.QUEUE: one.queue, Scope.TYPE: one.type}[scope]]
        context = {
            "verb": verb,
            "scope": scope.value,
            "name": name,
            "form": form,
            "pause": _pause_of(scope, name),
            "sum": queue_rows.Sum(concerned),
            "back": address(self, "changelist"),
        }
        return page(self, request, "jobqueue/admin/steering.html", TITLES[verb, scope], [breadcrumb(self)], **context)


def _may(request: HttpRequest) -> dict[str, bool]:
    """Return what the user may do on the pages of queues."""
    return {"may_pause": request.user.has_perm(MAY_PAUSE), "may_set": request.user.has_perm(limits.MAY_SET)}


TITLES: dict[tuple[str, Scope], Any] = {
    ("pause", Scope.QUEUE): _("Pause a queue"),
    ("pause", Scope.TYPE): _("Pause a job type"),
    ("resume", Scope.QUEUE): _("Resume a queue"),
    ("resume", Scope.TYPE): _("Resume a job type"),
}
DONE: dict[tuple[str, Scope], Any] = {
    ("pause", Scope.QUEUE): _(
        "The queue %(name)s is paused. Running jobs continue, and no more jobs are taken from the queue."
    ),
    ("pause", Scope.TYPE): _(
        "The job type %(name)s is paused. Running jobs continue, and no more jobs of the type are taken."
    ),
    ("resume", Scope.QUEUE): _("The queue %(name)s is resumed."),
    ("resume", Scope.TYPE): _("The job type %(name)s is resumed."),
}
NOTHING_DONE: dict[tuple[str, Scope], Any] = {
    ("pause", Scope.QUEUE): _("The queue %(name)s was already paused, and keeps its first reason."),
    ("pause", Scope.TYPE): _("The job type %(name)s was already paused, and keeps its first reason."),
    ("resume", Scope.QUEUE): _("The queue %(name)s was not paused."),
    ("resume", Scope.TYPE): _("The job type %(name)s was not paused."),
}


def _target(request: HttpRequest) -> tuple[Scope, str]:
    """Read the queue or type from the URL. Raises BadRequest."""
    scope, name = request.GET.get("scope", ""), request.GET.get("name", "")
    if scope not in set(Scope) or "\0" in name or len(name) > NAME_LENGTH:
        raise BadRequest("The address names no queue and no job type.")
    return Scope(scope), name


def _pause_of(scope: Scope, name: str) -> PauseRecord | None:
    return next((one for one in current().operator.pauses() if (one.scope, one.name) == (scope, name)), None)


def _steer(request: HttpRequest, verb: str, scope: Scope, name: str, why: str) -> None:
    """Pause or resume, log it, and add a message."""
    try:
        with together():
            changed = control.pause(scope, name, why) if verb == "pause" else control.resume(scope, name)
            if changed:
                _log(request, verb, scope, name, why)
    except JobQueueError as error:
        messages.error(request, error_told(error))
        return
    if not changed:
        messages.info(request, NOTHING_DONE[verb, scope] % {"name": name})
        return
    messages.success(request, DONE[verb, scope] % {"name": name})


def _log(request: HttpRequest, verb: str, scope: Scope, name: str, why: str) -> None:
    did = gettext("Paused") if verb == "pause" else gettext("Resumed")
    # Logged under the name, because the pause's row is deleted when it ends.
    target = Queue(pk=name, scope=scope.value, name=name)
    LogEntry.objects.log_actions(request.user.pk, [target], CHANGE, f"{did}: {why}" if why else f"{did}.")  # type: ignore[arg-type]


class Change(NamedTuple):
    """A pause, a resume or a limit in Django's log."""

    at: SafeString
    user: str
    target: str
    text: str


def _changes() -> list[Change]:
    """Read the latest pauses, resumes and limits from Django's log."""
    kind = ContentType.objects.get_for_model(Queue, for_concrete_model=False)
    rows = LogEntry.objects.filter(content_type=kind).select_related("user").order_by("-action_time")[:CHANGES_SHOWN]
    return [
        Change(display.at(row.action_time), row.user.get_username(), row.object_repr, row.change_message)
        for row in rows
    ]
