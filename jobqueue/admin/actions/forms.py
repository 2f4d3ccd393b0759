"""The forms of an operator's verbs: why, and what else each has to be told; and the order that is made of an answer."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from django import forms
from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import RegexValidator
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from jobqueue import backends
from jobqueue.clock import SYSTEM
from jobqueue.errors import InvalidOption
from jobqueue.handlers.options import NAME_LENGTH, REASON_LENGTH, UNSEEN, in_utc
from jobqueue.handlers.options import name as check_name
from jobqueue.handlers.registry import registry
from jobqueue.orders import Order, Verb
from jobqueue.orders.order import MOST_PER_MINUTE

#: Ten years, as for any other length of time.
_UNITS = {"minutes": (60, _("minutes")), "hours": (3_600, _("hours")), "days": (86_400, _("days"))}
_MOST_UNITS = 3_650


class Reason(forms.Form):
    """Why somebody does what he does: one line, which every verb may be told."""

    why = forms.CharField(
        label=_("Why"),
        required=False,
        max_length=REASON_LENGTH,
        widget=forms.TextInput(attrs={"class": "vTextField"}),
        validators=[
            RegexValidator(UNSEEN, _("Write it on one line, in characters that can be seen."), inverse_match=True)
        ],
        help_text=_("Optional. It is kept in the log of each job, with your name."),
    )
    field_order: Iterable[str] | None = (
        "per_minute",
        "scheduled_at",
        "amount",
        "unit",
        "priority",
        "queue",
        "why",
    )

    def values(self) -> dict[str, Any]:
        """Say what an order takes from it."""
        return {name: value for name, value in self.cleaned_data.items() if value not in (None, "")}


class Retrying(Reason):
    """A pace, so that a thousand retries do not fall on a sick service at once."""

    per_minute = forms.IntegerField(
        label=_("At most … a minute"),
        required=False,
        min_value=1,
        max_value=MOST_PER_MINUTE,
        help_text=_("Empty: all at once. Otherwise they become due one after another, at this pace."),
    )


class Rescheduling(Reason):
    """A moment, or a length of time from now on."""

    scheduled_at = forms.DateTimeField(
        label=_("At"),
        required=False,
        widget=forms.DateTimeInput(attrs={"type": "datetime-local", "step": "1"}, format="%Y-%m-%dT%H:%M:%S"),
    )
    amount = forms.IntegerField(label=_("Or in"), required=False, min_value=1, max_value=_MOST_UNITS)
    unit = forms.ChoiceField(
        label=_("Unit"), required=False, choices=[(name, label) for name, (_seconds, label) in _UNITS.items()]
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        zone = timezone.get_current_timezone_name() if settings.USE_TZ else settings.TIME_ZONE
        self.fields["scheduled_at"].help_text = gettext("In the time zone %(zone)s.") % {"zone": zone}
        self.fields["amount"].help_text = gettext("Counted from the moment you agree.")

    def clean(self) -> dict[str, Any]:
        given = super().clean() or self.cleaned_data
        if self.errors:
            return given
        if (given["scheduled_at"] is None) == (given["amount"] is None):
            raise ValidationError(gettext("Give either a moment, or how long to wait from now on."))
        given["scheduled_at"] = self._moment(given)
        return given

    @staticmethod
    def _moment(given: dict[str, Any]) -> datetime:
        if given["amount"] is not None:
            seconds, _label = _UNITS[given["unit"] or "minutes"]
            return SYSTEM.now() + timedelta(seconds=given["amount"] * seconds)
        try:
            moment = in_utc(given["scheduled_at"])
        except (OverflowError, ValueError):
            moment = None
        if moment is None or moment <= SYSTEM.now():
            raise ValidationError(
                {"scheduled_at": gettext("Give a moment to come; to run jobs at once, use “Run now”.")}
            )
        return moment

    def values(self) -> dict[str, Any]:
        return {name: value for name, value in super().values().items() if name not in ("amount", "unit")}


class Prioritising(Reason):
    """A priority."""

    priority = forms.IntegerField(
        label=_("Priority"), min_value=1, max_value=10, help_text=_("1 runs first, 10 last; 5 is usual.")
    )


class Moving(Reason):
    """The name of a queue; those that are known are offered."""

    queue = forms.CharField(
        label=_("Queue"),
        max_length=NAME_LENGTH,
        widget=forms.TextInput(attrs={"class": "vTextField", "list": "jq-queues", "autocomplete": "off"}),
        help_text=_("Workers take from it only if they serve all queues, or this one."),
    )

    @staticmethod
    def known_queues() -> list[str]:
        """List the queues that handlers name and those that are paused."""
        paused = {pause.name for pause in backends.current().pauses() if pause.scope == "queue"}
        return sorted({"default", *(one.options.queue for one in registry), *paused})

    def clean_queue(self) -> str:
        given: str = self.cleaned_data["queue"]
        try:
            check_name("queue", given)
        except InvalidOption as error:
            raise ValidationError(
                gettext("Use letters, digits and any of _ . : / @ - in it, and no blanks.")
            ) from error
        return given


FORMS: dict[str, type[Reason]] = {
    "retry": Retrying,
    "reschedule": Rescheduling,
    "prioritise": Prioritising,
    "move": Moving,
}


def form_of(verb: Verb, request: HttpRequest, *, answered: bool) -> Reason:
    """Make the form of a verb, filled in once it is an answer."""
    return FORMS.get(verb.name, Reason)(request.POST if answered else None)


def order_of(verb: Verb, request: HttpRequest, form: Reason) -> Order:
    """Make an order of an answer that will do."""
    user = request.user
    who: dict[str, Any] = {
        "user_id": str(user.pk),
        "user_name": user.get_username(),
        "of_staff": bool(getattr(user, "is_staff", False)),
    }
    return Order(verb=verb.name, **who, **form.values())
