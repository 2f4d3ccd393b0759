"""The schedules in the admin: a list, a page for each, and forms to make, edit and steer them."""

from __future__ import annotations

from datetime import datetime
from itertools import islice
from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.models import ADDITION, CHANGE, DELETION, LogEntry
from django.contrib.admin.utils import unquote
from django.forms import Media, Script
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect, JsonResponse
from django.template.loader import render_to_string
from django.urls import URLPattern, path
from django.utils.decorators import method_decorator
from django.utils.translation import gettext
from django.views.decorators.http import require_safe

from jobqueue.admin import display, live
from jobqueue.admin.actions.enqueue import NotOffered, offered, type_of
from jobqueue.admin.actions.forms import ReasonForm
from jobqueue.admin.actions.mixin import LOOKS as FORM_LOOKS
from jobqueue.admin.base import address, breadcrumb, known_queues, page
from jobqueue.admin.schedules import rows
from jobqueue.admin.schedules.form import ScheduleForm, zones
from jobqueue.admin.schedules.steering import DONE, LABELS, MAY, TITLES, steer
from jobqueue.backends import current
from jobqueue.errors import InvalidOption, JobQueueError
from jobqueue.models import Schedule
from jobqueue.observe.terminal_safe import one_line
from jobqueue.orders import error_told, together
from jobqueue.policy.schedules.rule import read_rule, zone_of
from jobqueue.records.schedule import Origin, ScheduleRecord
from jobqueue.schedules import operation, summary
from jobqueue.schedules.sync import differences

SHOWN = 500
SLOTS = 10
PREVIEW = Media(js=[Script("jobqueue/schedule.js", defer=True)], css={"all": ["jobqueue/schedule.css"]})  # type: ignore[list-item]
MAY_EDIT = "jobqueue.edit_schedule"


@admin.register(Schedule)
class ScheduleAdmin(live.LivePageAdmin):
    """The pages of the schedules."""

    @property
    def media(self) -> Media:
        return super().media + Media(css={"all": ["jobqueue/schedule.css"]})

    def get_urls(self) -> list[URLPattern]:
        name, wrap = f"{self.opts.app_label}_{self.opts.model_name}", self.admin_site.admin_view
        return [
            path("", wrap(self.changelist_view), name=f"{name}_changelist"),
            path("live/", wrap(self.live_view), name=f"{name}_live"),
            path("preview/", wrap(self.preview_view), name=f"{name}_preview"),
            path("make/", wrap(self.make_view), name=f"{name}_make"),
            path("<path:object_id>/change/", wrap(self.change_view), name=f"{name}_change"),
            path("<path:object_id>/change/live/", wrap(self.change_live_view), name=f"{name}_change_live"),
            path("<path:object_id>/edit/", wrap(self.edit_view), name=f"{name}_edit"),
            *(
                path(f"<path:object_id>/{verb}/", wrap(self.steer_view), {"verb": verb}, name=f"{name}_{verb}")
                for verb in LABELS
            ),
        ]

    # All of them

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Show all schedules."""
        self.require(request)
        now = current().now()
        may_add = request.user.has_perm(MAY_EDIT) and bool(offered())
        context = {
            "parts": [self._table(now)],
            "add": address(self, "make") if may_add else "",
            **live.frame(address(self, "live"), "?", now),
        }
        return page(self, request, "jobqueue/admin/schedules.html", gettext("Schedules"), **context)

    @method_decorator(require_safe)
    def live_view(self, request: HttpRequest) -> HttpResponse:
        """Return the list if it has changed."""
        self.require(request)
        now = current().now()
        return live.changes(request, now, [self._table(now)])

    def _table(self, now: datetime) -> live.RenderedPart:
        known, found = summary.known_types(), current().schedules.all(SHOWN + 1)
        shown = [rows.row_of(self, one, known, now) for one in found[:SHOWN]]
        return live.part("schedules", "schedule_table", {"rows": shown, "more": len(found) > SHOWN})

    # One of them

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show one schedule."""
        self.require(request)
        one = _find(object_id)
        if one is None:
            return self._gone(request)
        now = current().now()
        frame = live.frame(address(self, "change_live", object_id), "?", now)
        title = gettext("Schedule %(name)s") % {"name": one_line(one.name)}
        context = {"parts": [self._facts(request, one, now)], **frame}
        return page(self, request, "jobqueue/admin/schedules.html", title, [breadcrumb(self)], **context)

    @method_decorator(require_safe)
    def change_live_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Return the facts if they have changed."""
        self.require(request)
        one, now = _find(object_id), current().now()
        return live.changes(request, now, [] if one is None else [self._facts(request, one, now)])

    def _facts(self, request: HttpRequest, one: ScheduleRecord, now: datetime) -> live.RenderedPart:
        runs = summary.runs_of(one)
        rate = summary.success_rate(runs)
        shown = rows.run_rows(runs, self.admin_site.name)
        steps = summary.changes_of(one)
        return live.part(
            "schedule",
            "schedule_facts",
            {
                "schedule": rows.row_of(self, one, summary.known_types(), now),
                "record": one,
                "origin": rows.origin_of(one),
                "payload": display.text_block(summary.payload_of(one)),
                "slots": rows.slot_rows(summary.next_slots(one, SLOTS), one.zone),
                "runs": shown[:20],
                "heat": shown[::-1],
                "rate": "" if rate is None else rows.percent(rate),
                "changed": [(name, *map(summary.written, both)) for name, both in steps.items()],
                "verbs": [(verb, LABELS[verb], self._to(verb, one)) for verb in _verbs(request, one)],
                "edit": self._to("edit", one) if request.user.has_perm(MAY_EDIT) else "",
            },
        )

    def _to(self, name: str, one: ScheduleRecord) -> str:
        return address(self, name, admin.utils.quote(one.id))

    def _gone(self, request: HttpRequest) -> HttpResponse:
        messages.info(request, gettext("This schedule is gone."))
        return HttpResponseRedirect(address(self, "changelist"))

    # Forms

    def make_view(self, request: HttpRequest) -> HttpResponse:
        """Offer the types, then the form of a schedule, then store it."""
        self.require(request, MAY_EDIT)
        name, here, back = request.GET.get("type", ""), address(self, "make"), address(self, "changelist")
        if not name:
            context = {"types": [one.name for one in offered()], "address": here, "back": back}
            title = gettext("Add a schedule")
            return page(self, request, "jobqueue/admin/enqueue_types.html", title, [breadcrumb(self)], **context)
        return self._form(request, name, None, here, back)

    def edit_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Show the form with a schedule's values, then store them."""
        self.require(request, MAY_EDIT)
        one = _find(object_id)
        if one is None:
            return self._gone(request)
        back = self._to("change", one)
        return self._form(request, one.type, one, back, back)

    def _form(
        self, request: HttpRequest, name: str, one: ScheduleRecord | None, refused: str, back: str
    ) -> HttpResponse:
        if request.method not in ("GET", "HEAD", "POST"):
            return HttpResponseNotAllowed(["GET", "POST"])
        try:
            kind = type_of(name)
        except NotOffered as reason:
            messages.error(request, str(reason))
            return HttpResponseRedirect(refused)
        form = ScheduleForm(kind, one, request.POST if request.method == "POST" else None)
        if form.is_valid() and (stored := _stored(request, form, one)) is not None:
            return HttpResponseRedirect(self._to("change", stored))
        context = {
            "media": FORM_LOOKS + PREVIEW,
            "form": form,
            "kind": kind,
            "schedule": one,
            "is_of_code": one is not None and one.origin is Origin.CODE,
            "queues": sorted(known_queues()),
            "zones": zones(),
            "preview": address(self, "preview"),
            "back": back,
        }
        words = {"name": one_line(one.name) if one else kind.name}
        title = gettext("Edit %(name)s") % words if one else gettext("Add a schedule of %(name)s") % words
        return page(self, request, "jobqueue/admin/schedule_form.html", title, [breadcrumb(self)], **context)

    @method_decorator(require_safe)
    def preview_view(self, request: HttpRequest) -> HttpResponse:
        """Return the next slots of a rule that somebody types, or what is wrong with it."""
        self.require(request)
        rule, zone = request.GET.get("rule", "")[:200], request.GET.get("zone", "")[:100]
        context: dict[str, Any] = {"zone": zone}
        try:
            zone_of(zone)
            read = read_rule(rule, zone)
            slots = list(islice(read.after(current().now()), SLOTS))
            context |= {"words": read.in_words(), "slots": rows.slot_rows(slots, zone)}
        except InvalidOption as error:
            context["error"] = error_told(error)
        html = render_to_string("jobqueue/admin/schedule_preview.html", context)
        return JsonResponse({"html": html}, headers={"Cache-Control": "no-store"})

    def steer_view(self, request: HttpRequest, object_id: str, verb: str) -> HttpResponse:
        """Ask before a verb, take the reason, and carry it out."""
        self.require(request, MAY[verb])
        if request.method not in ("GET", "HEAD", "POST"):
            return HttpResponseNotAllowed(["GET", "POST"])
        one = _find(object_id)
        if one is None:
            return self._gone(request)
        form, back = ReasonForm(request.POST if request.method == "POST" else None), self._to("change", one)
        if form.is_valid():
            _steer(request, verb, one, form.cleaned_data["why"])
            return HttpResponseRedirect(address(self, "changelist") if verb == "remove" else back)
        context = {"verb": verb, "label": LABELS[verb], "form": form, "schedule": one, "back": back}
        title = TITLES[verb] % {"name": one_line(one.name)}
        return page(self, request, "jobqueue/admin/schedule_control.html", title, [breadcrumb(self)], **context)


def _find(object_id: str) -> ScheduleRecord | None:
    key = unquote(object_id)
    return None if "\0" in key else current().schedules.get(key)


def _verbs(request: HttpRequest, one: ScheduleRecord) -> list[str]:
    """List what this user can do with a schedule now."""
    fits = {
        "pause": one.paused_at is None,
        "resume": one.paused_at is not None,
        "run": True,
        "reset": bool(differences(one)),
        "remove": one.origin is not Origin.CODE or one.left_code_at is not None,
    }
    return [verb for verb, is_fit in fits.items() if is_fit and request.user.has_perm(MAY[verb])]


def _stored(request: HttpRequest, form: ScheduleForm, one: ScheduleRecord | None) -> ScheduleRecord | None:
    """Store the schedule of a valid form, log it, and add a message. Return ``None`` if it was refused."""
    try:
        with together():
            if one is None:
                stored = operation.add(form.cleaned_data["name"], form.said)
            else:
                operation.edit(one, form.said)
                stored = one
            _log(request, stored, CHANGE if one else ADDITION, form.cleaned_data["why"] or gettext("From the form"))
    except JobQueueError as error:
        messages.error(request, error_told(error))
        return None
    messages.success(request, gettext("The schedule %(name)s is stored.") % {"name": one_line(stored.name)})
    return stored


def _steer(request: HttpRequest, verb: str, one: ScheduleRecord, why: str) -> None:
    """Carry out a verb, log it, and add a message."""
    try:
        with together():
            is_done = steer(verb, one, why)
            if is_done:
                said = f"{LABELS[verb]}: {why}" if why else f"{LABELS[verb]}."
                _log(request, one, DELETION if verb == "remove" else CHANGE, said)
    except JobQueueError as error:
        messages.error(request, error_told(error))
        return
    if is_done:
        messages.success(request, DONE[verb] % {"name": one_line(one.name)})
    else:
        messages.info(request, gettext("Nothing had to change."))


def _log(request: HttpRequest, one: ScheduleRecord, flag: int, said: str) -> None:
    target = Schedule(pk=one.id, name=one.name)
    LogEntry.objects.log_actions(request.user.pk, [target], flag, said)  # type: ignore[arg-type]
