"""The alerts in the admin: a list of those that fire and of past ones, a page for each, and silences."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.admin.utils import unquote
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.urls import URLPattern, path
from django.utils.decorators import method_decorator
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_safe

from jobqueue.admin import display, live
from jobqueue.admin.actions.forms import ReasonForm
from jobqueue.admin.alerts import rows
from jobqueue.admin.base import address, breadcrumb, page
from jobqueue.admin.links import Links
from jobqueue.alert_settings import are_on
from jobqueue.alerts.evaluation import is_silenced
from jobqueue.backends import current
from jobqueue.errors import JobQueueError
from jobqueue.models import Alert
from jobqueue.orders import error_told
from jobqueue.records.alert import AlertRecord, AlertState, Silence

MAY_SILENCE = "jobqueue.silence_alert"
PAST_SHOWN = 50
_UNITS = {"minutes": (60, _("minutes")), "hours": (3_600, _("hours")), "days": (86_400, _("days"))}


class SilenceForm(ReasonForm):
    """How long an alert is silenced, whether all alerts of its rule are, and why."""

    amount = forms.IntegerField(label=_("For"), min_value=1, max_value=3_650, initial=1)
    unit = forms.ChoiceField(
        label=_("Unit"), choices=[(name, label) for name, (_seconds, label) in _UNITS.items()], initial="hours"
    )
    whole_rule = forms.BooleanField(label=_("All alerts of this rule"), required=False)
    field_order = ("amount", "unit", "whole_rule", "why")

    def __init__(self, data: Any = None) -> None:
        super().__init__(data)
        self.fields["why"].required = True
        self.fields["why"].help_text = _("Whoever is on call next reads it.")

    @property
    def length(self) -> timedelta:
        """Return how long."""
        return timedelta(seconds=self.cleaned_data["amount"] * _UNITS[self.cleaned_data["unit"]][0])


@admin.register(Alert)
class AlertAdmin(live.LivePageAdmin):
    """The pages of the alerts."""

    def get_urls(self) -> list[URLPattern]:
        name, wrap = f"{self.opts.app_label}_{self.opts.model_name}", self.admin_site.admin_view
        return [
            path("", wrap(self.changelist_view), name=f"{name}_changelist"),
            path("live/", wrap(self.live_view), name=f"{name}_live"),
            path("<path:object_id>/change/", wrap(self.change_view), name=f"{name}_change"),
            path("<path:object_id>/silence/", wrap(self.silence_view), name=f"{name}_silence"),
            path("<path:object_id>/unsilence/", wrap(self.unsilence_view), name=f"{name}_unsilence"),
        ]

    @method_decorator(require_safe)
    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Show the alerts that fire, and the last ones that are past."""
        self.require(request)
        context = {"parts": self._tables(), **live.frame(address(self, "live"), "?", current().now())}
        return page(self, request, "jobqueue/admin/parts.html", gettext("Alerts"), **context)

    @method_decorator(require_safe)
    def live_view(self, request: HttpRequest) -> HttpResponse:
        """Return the tables that have changed."""
        self.require(request)
        return live.changes(request, current().now(), self._tables())

    def _tables(self) -> list[live.RenderedPart]:
        alerts, now, site = current().alerts, current().now(), self.admin_site.name
        silences, opened = alerts.silences(), alerts.open()
        order = sorted(opened, key=lambda one: (one.state is not AlertState.FIRING, -one.level, one.began_at))
        firing = [rows.row_of(site, one, silences, now) for one in order]
        past = [rows.row_of(site, one, silences, now) for one in alerts.past(PAST_SHOWN)]
        return [
            live.part("firing", "alert_table", {"rows": firing, "is_open": True, "is_on": are_on()}),
            live.part("past", "alert_table", {"rows": past, "is_on": are_on()}),
        ]

    @method_decorator(require_safe)
    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show one alert, and what each channel answered."""
        self.require(request)
        one = _find(object_id)
        if one is None:
            return self._gone(request)
        now, silence = current().now(), is_silenced(one, current().alerts.silences())
        verb = "unsilence" if silence else "silence"
        context = {
            "alert": one,
            "row": rows.row_of(self.admin_site.name, one, [silence] if silence else [], now),
            "advice": display.clean(one.facts.advice),
            "measured": one.facts.measured,
            "threshold": one.facts.threshold,
            "examples": [(display.clean(key), Links(self.admin_site.name).job(key)) for key in one.facts.examples],
            "more": rows.more(one),
            "sent": rows.sent_rows(self, one),
            "verb": verb,
            "silence": address(self, verb, object_id) if request.user.has_perm(MAY_SILENCE) else "",
        }
        title = gettext("Alert %(key)s") % {"key": display.clean(one.key)}
        return page(self, request, "jobqueue/admin/alert.html", title, [breadcrumb(self)], **context)

    # Silences

    def silence_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Ask how long and why, and silence the alert, also if it comes back."""
        return self._steer(request, object_id, SilenceForm(request.POST if request.method == "POST" else None))

    def unsilence_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Ask, and end the silence."""
        return self._steer(request, object_id, ReasonForm(request.POST if request.method == "POST" else None))

    def _steer(self, request: HttpRequest, object_id: str, form: ReasonForm) -> HttpResponse:
        self.require(request, MAY_SILENCE)
        if request.method not in ("GET", "HEAD", "POST"):
            return HttpResponseNotAllowed(["GET", "POST"])
        one = _find(object_id)
        if one is None:
            return self._gone(request)
        back, is_silence = address(self, "change", object_id), isinstance(form, SilenceForm)
        if form.is_valid():
            _carry_out(request, one, form)
            return HttpResponseRedirect(back)
        title = gettext("Silence the alert?") if is_silence else gettext("End the silence?")
        label = gettext("Silence") if is_silence else gettext("End the silence")
        sentence = display.clean(one.facts.sentence)
        context = {"form": form, "back": back, "label": label, "sentence": sentence, "is_silence": is_silence}
        return page(self, request, "jobqueue/admin/alert_silence.html", title, [breadcrumb(self)], **context)

    def _gone(self, request: HttpRequest) -> HttpResponse:
        messages.warning(request, gettext("There is no such alert. Old ones are deleted."))
        return HttpResponseRedirect(address(self, "changelist"))


def _find(object_id: str) -> AlertRecord | None:
    key = unquote(object_id)
    return None if "\0" in key else current().alerts.get(key)


def _carry_out(request: HttpRequest, one: AlertRecord, form: ReasonForm) -> None:
    """Store or delete the silence of an alert, log it, and add a message."""
    why, alerts, backend = form.cleaned_data["why"], current().alerts, current()
    silence = is_silenced(one, alerts.silences())
    try:
        if isinstance(form, SilenceForm):
            key = one.facts.cause if form.cleaned_data["whole_rule"] else one.key
            until, author = backend.now() + form.length, request.user.get_username()
            alerts.silence(Silence(key=key, until=until, reason=why, author=author))
            did = gettext("Silenced until %(until)s") % {"until": display.exactly(until)}
        else:
            did = gettext("The silence has ended")
            alerts.unsilence(silence.key if silence else one.key)
    except JobQueueError as error:
        messages.error(request, error_told(error))
        return
    target = Alert(pk=one.id, key=one.key, state=one.state.value)
    LogEntry.objects.log_actions(request.user.pk, [target], CHANGE, f"{did}: {why}" if why else f"{did}.")  # type: ignore[arg-type]
    messages.success(request, f"{did}.")
