"""The forms of the verbs, and the instructions made from them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from django import forms
from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import RegexValidator
from django.http import HttpRequest, QueryDict
from django.utils import timezone
from django.utils.formats import number_format
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from jobqueue.clock import SYSTEM
from jobqueue.errors import InvalidOption
from jobqueue.handlers.options import NAME_LENGTH, REASON_LENGTH, UNSEEN, in_utc
from jobqueue.handlers.options import name as check_name
from jobqueue.models import Order
from jobqueue.orders import VERBS, Instruction, Verb
from jobqueue.orders.instruction import MOST_PER_MINUTE

_UNITS = {"minutes": (60, _("minutes")), "hours": (3_600, _("hours")), "days": (86_400, _("days"))}
#: Ten years in days, the limit of every duration.
_MOST_UNITS = 3_650
#: From more jobs on, whoever deletes them types their number.
TYPED_ABOVE = 1_000
#: What may separate the digits of a number, in any language.
_SEPARATORS = " ,.'_\u2019\u00a0\u202f"


class ReasonForm(forms.Form):
    """The reason, which every verb takes."""

    why = forms.CharField(
        label=_("Why"),
        required=False,
        max_length=REASON_LENGTH,
        widget=forms.TextInput(attrs={"class": "vTextField"}),
        validators=[RegexValidator(UNSEEN, _("Enter a single line of visible characters."), inverse_match=True)],
        help_text=_("Optional. Recorded in each job's history with your name."),
    )
    field_order: Iterable[str] | None = (
        "per_minute",
        "scheduled_at",
        "amount",
        "unit",
        "priority",
        "queue",
        "why",
        "number",
    )

    def values(self) -> dict[str, Any]:
        """Return the values for an instruction."""
        return {name: value for name, value in self.cleaned_data.items() if value not in (None, "")}


class RetryForm(ReasonForm):
    """A pace, so that a thousand retries don't hit a struggling service at once."""

    per_minute = forms.IntegerField(
        label=_("At most … a minute"),
        required=False,
        min_value=1,
        max_value=MOST_PER_MINUTE,
        help_text=_(
            "Leave the field empty to retry all jobs at once. Otherwise the jobs become due one after another at "
            "this pace."
        ),
    )


class RescheduleForm(ReasonForm):
    """A time, or a duration from now on."""

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
        self.fields["amount"].help_text = gettext("From the moment you confirm.")

    def clean(self) -> dict[str, Any]:
        given = super().clean() or self.cleaned_data
        if self.errors:
            return given
        if (given["scheduled_at"] is None) == (given["amount"] is None):
            raise ValidationError(gettext("Enter either a time, or how long to wait."))
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
                {"scheduled_at": gettext("Enter a time in the future. To run jobs at once, use “Run now”.")}
            )
        return moment

    def values(self) -> dict[str, Any]:
        return {name: value for name, value in super().values().items() if name not in ("amount", "unit")}


class PriorityForm(ReasonForm):
    """A priority."""

    priority = forms.IntegerField(
        label=_("Priority"), min_value=1, max_value=10, help_text=_("1 runs first, 10 last. The default is 5.")
    )


class MoveForm(ReasonForm):
    """The name of a queue, with known names as suggestions."""

    queue = forms.CharField(
        label=_("Queue"),
        max_length=NAME_LENGTH,
        widget=forms.TextInput(attrs={"class": "vTextField", "list": "jq-queues", "autocomplete": "off"}),
        help_text=_("Only workers that serve all queues or this queue will take the jobs."),
    )

    def clean_queue(self) -> str:
        given: str = self.cleaned_data["queue"]
        try:
            check_name("queue", given)
        except InvalidOption as error:
            raise ValidationError(
                gettext("Use only letters, digits and the characters _ . : / @ - in the name.")
            ) from error
        return given


FORMS: dict[str, type[ReasonForm]] = {
    "retry": RetryForm,
    "reschedule": RescheduleForm,
    "prioritise": PriorityForm,
    "move": MoveForm,
}


class NumberMixin(forms.Form):
    """The number of jobs, typed in, before many of them are deleted."""

    number = forms.CharField(
        label=_("Number of jobs"), max_length=20, widget=forms.TextInput(attrs={"autocomplete": "off"})
    )

    def __init__(self, *args: Any, total: int, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.total = total
        shown = number_format(total, force_grouping=True)
        self.fields["number"].help_text = gettext("Type %(number)s to confirm.") % {"number": shown}

    def clean_number(self) -> str:
        given: str = self.cleaned_data["number"]
        if "".join(letter for letter in given if letter not in _SEPARATORS) != str(self.total):
            raise ValidationError(gettext("This is not the number of jobs."))
        return ""


class LargePurgeForm(NumberMixin, ReasonForm):
    """The reason and the number of jobs."""


def form_of(order: Order, data: QueryDict | None, why: str = "") -> ReasonForm:
    """Make the form of an order's question, bound to an answer if there is one."""
    if VERBS[order.verb].deletes and order.total > TYPED_ABOVE:
        return LargePurgeForm(data, initial={"why": why}, total=order.total)
    return form_of_verb(VERBS[order.verb], data, why)


def form_of_verb(verb: Verb, data: QueryDict | None, why: str = "") -> ReasonForm:
    """Make the form of a verb that is carried out on one job."""
    return FORMS.get(verb.name, ReasonForm)(data, initial={"why": why})


def instruction(verb: Verb, request: HttpRequest, form: ReasonForm | None = None) -> Instruction:
    """Make an instruction from a valid form, or one without values for a question."""
    user = request.user
    who: dict[str, Any] = {
        "user_id": str(user.pk),
        "user_name": user.get_username(),
        "of_staff": bool(getattr(user, "is_staff", False)),
    }
    return Instruction(verb=verb.name, **who, **(form.values() if form else {}))
