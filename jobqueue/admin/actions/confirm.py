"""The confirmation of a verb: how many jobs it affects, and whether the user agreed to that many."""

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
class AffectedJobs:
    """The number of jobs that a verb affects, by status, and which it leaves alone and why.

    ``part`` says that only a part of the table was searched, so that there may be more.
    """

    found: Counter[str]
    left: Sequence[tuple[str, str]]
    part: bool = False

    @property
    def expected(self) -> int:
        """The number that the user agrees to. One more than the cap stands for any larger number."""
        return min(self.found.total(), CAP + 1)

    @property
    def is_large(self) -> bool:
        """Return whether they are too many for one request."""
        return self.part or self.expected > min(BATCH, CAP)

    @property
    def is_empty(self) -> bool:
        """Return whether there is certainly nothing to do."""
        return not self.expected and not self.part

    @property
    def shown(self) -> str:
        """The formatted number, with a plus sign if there may be more."""
        return counted(min(self.expected, CAP), self.part or self.expected > CAP)

    @property
    def by_status(self) -> list[tuple[Any, str]]:
        return [
            (label, counted(min(self.found[status], CAP), self.found[status] > CAP))
            for status, label in STATUS_LABELS
            if self.found[status]
        ]


def affected_rows(verb: Verb, statuses: Sequence[str]) -> AffectedJobs:
    """Count the jobs that a user selected."""
    found = Counter(statuses)
    left = Counter({status: count for status, count in found.items() if not verb.accepts(status)})
    words = [f"{label} ({left[status]})" for status, label in STATUS_LABELS if left[status]]
    return AffectedJobs(
        found - left, [(get_text_list(words, gettext("and")), str(verb.text.not_eligible))] if words else []
    )


def affected_by_filter(verb: Verb, wanted: Filter) -> AffectedJobs:
    """Count the jobs that match a filter, each status up to the cap. Jobs left alone are not counted."""
    taken = verb.statuses_in(wanted)
    counts = {status: results.counted(replace(wanted, statuses=frozenset({status}))) for status in sorted(taken)}
    found = Counter({status.value: one.found + one.more for status, one in counts.items()})
    named = wanted.statuses or frozenset(JobStatus)
    left = [
        (_labels(named - verb.eligible_statuses), str(verb.text.not_eligible)),
        (_labels((named & verb.eligible_statuses) - taken), str(verb.text.not_default)),
    ]
    return AffectedJobs(
        found, [(labels, why) for labels, why in left if labels], any(one.is_part for one in counts.values())
    )


def _labels(statuses: frozenset[JobStatus]) -> str:
    return get_text_list([str(label) for status, label in STATUS_LABELS if status in statuses], gettext("and"))


def agreed(request: HttpRequest, affected: AffectedJobs) -> bool:
    """Return whether the user agreed to at least as many jobs as there are now."""
    expected = request.POST.get("expected", "")
    agreed_to = (
        int(expected) if expected.isdecimal() and len(expected) < 10 else 0
    )  # int() is slow for very many digits
    return is_answer(request) and affected.expected <= agreed_to


def is_answer(request: HttpRequest) -> bool:
    """Return whether a form comes from the confirmation page."""
    return request.POST.get("confirmed") == "yes"


def holds_nul(wanted: Filter) -> bool:
    """Return whether a filter contains a NUL, which Postgres rejects."""
    return "\\u0000" in json.dumps(filter_to_json(wanted))


def sealed(wanted: Filter, back: str) -> str:
    """Sign a filter and the URL to return to, for a hidden field of the form."""
    return signing.dumps([filter_to_json(wanted), back], salt=_SALT, compress=True)


def unsealed(text: str) -> tuple[Filter, str]:
    """Read what ``sealed`` signed. Raises BadRequest."""
    try:
        wanted, back = signing.loads(text, salt=_SALT)
        return filter_from_json(wanted), str(back)
    except (signing.BadSignature, InvalidOption) as error:
        raise BadRequest("The form does not say which jobs are meant.") from error
