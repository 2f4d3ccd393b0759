"""The question before a verb: how many jobs of which status it means, and whether the answer agrees to as many."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.core import signing
from django.core.exceptions import BadRequest
from django.http import HttpRequest
from django.utils.text import get_text_list
from django.utils.translation import gettext

from jobqueue.admin.base import counted
from jobqueue.admin.search import results
from jobqueue.admin.search.results import CAP
from jobqueue.control import BATCH
from jobqueue.errors import InvalidOption
from jobqueue.models.job import STATUS_LABELS
from jobqueue.orders import Verb
from jobqueue.records import Filter, filter_from_json, filter_to_json
from jobqueue.states import JobStatus

_SALT = "jobqueue.admin.actions.confirm"


@dataclass(frozen=True, slots=True)
class Tally:
    """How many jobs a verb means, by status, and which it leaves alone, with the reason.

    ``part`` says that only a part of the table was looked at, so that there may be more.
    """

    found: Counter[str]
    left: Sequence[tuple[str, str]]
    part: bool = False

    @property
    def expected(self) -> int:
        """How many an agreement is for; one more than the cap stands for any number."""
        return min(self.found.total(), CAP + 1)

    @property
    def is_large(self) -> bool:
        """Whether they are too many for a request."""
        return self.part or self.expected > min(BATCH, CAP)

    @property
    def is_empty(self) -> bool:
        """Whether there is certainly nothing to do."""
        return not self.expected and not self.part

    @property
    def shown(self) -> str:
        """The number as people write it; with a sign where there may be more."""
        return counted(min(self.expected, CAP), self.part or self.expected > CAP)

    @property
    def by_status(self) -> list[tuple[Any, str]]:
        return [
            (label, counted(min(self.found[status], CAP), self.found[status] > CAP))
            for status, label in STATUS_LABELS
            if self.found[status]
        ]


def tally_of_rows(verb: Verb, statuses: Sequence[str]) -> Tally:
    """Count jobs that were selected one by one."""
    found = Counter(statuses)
    left = Counter({status: count for status, count in found.items() if not verb.fits(status)})
    words = [f"{label} ({left[status]})" for status, label in STATUS_LABELS if left[status]]
    return Tally(found - left, [(get_text_list(words, gettext("and")), str(verb.others))] if words else [])


def tally_of_filter(verb: Verb, wanted: Filter) -> Tally:
    """Count what a filter lets through, each status up to the cap; what is left alone is named, and not counted."""
    taken = verb.taken(wanted)
    counts = {status: results.counted(replace(wanted, statuses=frozenset({status}))) for status in sorted(taken)}
    found = Counter({status.value: one.found + one.more for status, one in counts.items()})
    named = wanted.statuses or frozenset(JobStatus)
    left = [
        (_labels(named - verb.statuses), str(verb.others)),
        (_labels((named & verb.statuses) - taken), str(verb.spared)),
    ]
    return Tally(found, [(labels, why) for labels, why in left if labels], any(one.part for one in counts.values()))


def _labels(statuses: frozenset[JobStatus]) -> str:
    return get_text_list([str(label) for status, label in STATUS_LABELS if status in statuses], gettext("and"))


def agreed(request: HttpRequest, tally: Tally) -> bool:
    """Say whether the user agreed to at least as many as there are now."""
    expected = request.POST.get("expected", "")
    agreed_to = int(expected) if expected.isdecimal() and len(expected) < 10 else 0  # no digits without end
    return is_answer(request) and tally.expected <= agreed_to


def is_answer(request: HttpRequest) -> bool:
    """Say whether a form comes from the page that asks."""
    return request.POST.get("confirmed") == "yes"


def holds_nul(wanted: Filter) -> bool:
    """Say whether a filter asks for what no text of a database can be, and what Postgres would not be asked for."""
    return "\\u0000" in json.dumps(filter_to_json(wanted))


def sealed(wanted: Filter, back: str) -> str:
    """Write a filter for a form, so that what comes back is what was asked about: moments and all."""
    return signing.dumps([filter_to_json(wanted), back], salt=_SALT, compress=True)


def unsealed(text: str) -> tuple[Filter, str]:
    """Read what ``sealed`` wrote, and nothing else."""
    try:
        wanted, back = signing.loads(text, salt=_SALT)
        return filter_from_json(wanted), str(back)
    except (signing.BadSignature, InvalidOption) as error:
        raise BadRequest("The form does not say which jobs are meant.") from error
