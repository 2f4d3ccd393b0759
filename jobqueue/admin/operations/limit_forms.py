"""The forms that set and unset the limits of a queue or job type."""

from __future__ import annotations

from typing import Any

from django import forms
from django.core.exceptions import BadRequest, ValidationError
from django.http import QueryDict
from django.utils.translation import gettext_lazy as _

from jobqueue.admin.actions.forms import ReasonForm
from jobqueue.errors import InvalidOption
from jobqueue.handlers.limits import declared_book
from jobqueue.handlers.registry import registry
from jobqueue.models.limit import KIND_LABELS
from jobqueue.policy.limits.declared_limits import LONGEST_WINDOW, MOST, SHORTEST_WINDOW, Concurrency, Rate
from jobqueue.records import Limit, LimitKind, Scope


class LimitForm(ReasonForm):
    """A limit of one queue or type. Only keys that the code declares there can be chosen."""

    kind = forms.ChoiceField(label=_("Kind"), choices=KIND_LABELS)
    number = forms.IntegerField(
        label=_("Number"),
        min_value=1,
        max_value=MOST,
        help_text=_("How many jobs may run at once, or start in each window of time. Running jobs continue."),
    )
    per = forms.FloatField(
        label=_("Window"),
        required=False,
        min_value=SHORTEST_WINDOW,
        max_value=LONGEST_WINDOW,
        help_text=_("Seconds. Only for a rate."),
    )
    key = forms.ChoiceField(label=_("Key"), required=False, help_text=_("The limit holds for each value by itself."))
    field_order = ("kind", "number", "per", "key", "why")

    def __init__(self, scope: Scope, name: str, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.scope, self.name = scope, name
        known = {one.key for one in declared_book(registry).of_target(scope, name)} - {""}
        choices = [("", _("none"))] + [(key, key) for key in sorted(known)]
        self.fields["key"].choices = choices  # type: ignore[attr-defined]
        self.fields["why"].required = True
        self.fields["why"].help_text = _("Shown to everyone who can see the queue, and kept in the log.")

    def clean(self) -> dict[str, Any]:
        given = super().clean() or self.cleaned_data
        if not self.errors and (given["kind"] == LimitKind.RATE) != (given["per"] is not None):
            raise ValidationError({"per": _("A rate has a window, and a limit of jobs that run at once has none.")})
        return given

    @property
    def limit(self) -> Limit:
        """The limit that a valid form describes."""
        given = self.cleaned_data
        key = given["key"] or None
        if given["kind"] == LimitKind.RATE:
            return Rate(given["number"], per=given["per"], key=key).of(self.scope, self.name)
        return Concurrency(given["number"], key=key).of(self.scope, self.name)


def limit_of(scope: Scope, name: str, query: QueryDict) -> Limit:
    """Read from an address which limit is meant, whatever its number. Raise BadRequest if it names none."""
    key = query.get("key") or None
    try:
        if query.get("kind") == LimitKind.RATE:
            return Rate(1, per=float(query.get("per", "")), key=key).of(scope, name)
        return Concurrency(1, key=key).of(scope, name)
    except (InvalidOption, ValueError) as error:
        raise BadRequest("The address names no limit.") from error
