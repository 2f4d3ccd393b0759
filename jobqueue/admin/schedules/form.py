"""The form of a schedule: its rule, its payload by the type's properties, and the options of its jobs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from zoneinfo import available_timezones

from django import forms
from django.conf import settings
from django.utils.translation import gettext_lazy as _

from jobqueue import foreign_json
from jobqueue.admin.actions.enqueue import EnqueueForm
from jobqueue.admin.dashboard import scales
from jobqueue.errors import InvalidOption
from jobqueue.handlers.options import NAME_LENGTH
from jobqueue.handlers.options import name as check_name
from jobqueue.handlers.registry import JobType
from jobqueue.models.schedule import MISSED_LABELS, OVERLAP_LABELS, WHILE_PAUSED_LABELS
from jobqueue.orders import error_told
from jobqueue.policy.schedules.rule import read_rule, zone_of
from jobqueue.records.schedule import ScheduleRecord
from jobqueue.schedules.said import said

_DAY = 86_400
_MOMENT = forms.DateTimeInput(attrs={"type": "datetime-local", "step": "1"}, format="%Y-%m-%dT%H:%M:%S")
_FIRST = ("name", "rule", "zone")
_FIELD_OF = {"tz": "zone", "Every(…)": "rule"}


class ScheduleForm(EnqueueForm):
    """A schedule of one type. Its payload is validated by the type's model."""

    name = forms.CharField(label=_("Name"), max_length=NAME_LENGTH)
    rule = forms.CharField(
        label=_("Rule"),
        max_length=200,
        help_text=_("A cron line of five fields, or six with seconds first; @daily and the like; or every 15m."),
    )
    zone = forms.CharField(
        label=_("Time zone"), max_length=100, widget=forms.TextInput({"list": "jq-zones", "autocomplete": "off"})
    )
    missed = forms.ChoiceField(label=_("Slots that no worker was there for"), choices=MISSED_LABELS)
    missed_cap = forms.IntegerField(label=_("Cap of missed slots"), min_value=1, max_value=10_000)
    overlap = forms.ChoiceField(label=_("While an earlier job waits or runs"), choices=OVERLAP_LABELS)
    while_paused = forms.ChoiceField(label=_("Slots of a pause"), choices=WHILE_PAUSED_LABELS)
    start = forms.DateTimeField(label=_("Start"), required=False, widget=_MOMENT)
    end = forms.DateTimeField(label=_("End"), required=False, widget=_MOMENT)
    max_runs = forms.IntegerField(label=_("Limit of runs"), required=False, min_value=1, max_value=1_000_000_000)
    jitter = forms.IntegerField(
        label=_("Jitter"), min_value=0, max_value=_DAY, help_text=_("Seconds. Delays all jobs by the same part of it.")
    )
    expires_after = forms.IntegerField(
        label=_("Expires after"),
        required=False,
        min_value=1,
        max_value=365 * _DAY,
        help_text=_("Seconds from the slot. A job that did not begin by then is ended."),
    )

    def __init__(self, kind: JobType, schedule: ScheduleRecord | None, data: Any = None) -> None:
        like, payload, first = None, None, _initial(kind, schedule)
        if schedule is not None:
            like = SimpleNamespace(queue=first["queue"], priority=first["priority"], tenant=first["tenant"])
            payload = foreign_json.read(schedule.payload)
        super().__init__(kind, like, payload, data)  # type: ignore[arg-type]
        del self.fields["delay"]
        self.initial = first
        self.fields = {name: self.fields[name] for name in (*_FIRST, *self.fields)}
        self.schedule = schedule
        if schedule is not None:
            self.fields["name"].disabled = True
        #: The validated fields of the schedule.
        self.said: dict[str, Any] = {}

    def clean(self) -> dict[str, Any]:
        given = super().clean()
        if not self.errors:
            try:
                check_name("name", given["name"])
                zone_of(given["zone"])
                rule = read_rule(given["rule"], given["zone"])
                self.said = said(self.kind, rule, given["zone"], self.stored, self._options(given))
            except InvalidOption as error:
                name = "rule" if error.option.startswith("The cron line") else error.option
                name = _FIELD_OF.get(name, name)
                self.add_error(name if name in self.fields else None, error_told(error))
        return given

    def _options(self, given: dict[str, Any]) -> dict[str, Any]:
        """Return the options for ``said``. What the form doesn't show stays."""
        stored = dict(self.schedule.options) if self.schedule else {}
        shown = ("queue", "priority", "tenant", "expires_after")
        of_slots = ("start", "end", "max_runs", "jitter", "missed", "missed_cap", "overlap", "while_paused")
        stored |= {name: given[name] or None for name in shown}
        return stored | {name: given[name] for name in of_slots}


def _initial(kind: JobType, schedule: ScheduleRecord | None) -> dict[str, Any]:
    """Return the first values of the form."""
    if schedule is None:
        return {
            "queue": kind.options.queue,
            "priority": kind.options.priority,
            "zone": settings.TIME_ZONE,
            "missed": "once",
            "missed_cap": 100,
            "overlap": "allow",
            "while_paused": "drop",
            "jitter": 0,
        }
    options = {"queue": kind.options.queue, "priority": kind.options.priority, "tenant": "", **schedule.options}
    same = ("name", "rule", "zone", "missed", "missed_cap", "overlap", "while_paused", "max_runs")
    return {
        **options,
        **{name: getattr(schedule, name) for name in same},
        "jitter": int(schedule.jitter.total_seconds()),
        "start": schedule.start_at and scales.here(schedule.start_at),
        "end": schedule.end_at and scales.here(schedule.end_at),
    }


def zones() -> list[str]:
    """List the time zones."""
    return sorted(available_timezones())
