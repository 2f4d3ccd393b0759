"""The words of the question before an order: which jobs it changes, and which it leaves alone and why."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest
from django.utils.text import get_text_list
from django.utils.translation import gettext, ngettext

from jobqueue.admin.base import counted
from jobqueue.admin.search.query import spelled
from jobqueue.models import Order
from jobqueue.models.job import STATUS_LABELS
from jobqueue.orders import VERBS, Verb
from jobqueue.records import Filter, filter_from_json, filter_to_json
from jobqueue.states import JobStatus


@dataclass(frozen=True, slots=True)
class AffectedJobs:
    """The jobs of an order, by status, and which are left alone and why."""

    total: int
    by_status: list[tuple[Any, str]]
    left: list[tuple[str, str]]
    #: The query that finds them; empty if the jobs were selected one by one.
    query: str


def affected_by(order: Order) -> AffectedJobs:
    """Describe the jobs of a counted order."""
    found = order.account["found"]
    by_status = [(label, counted(found[status])) for status, label in STATUS_LABELS if found.get(status)]
    return AffectedJobs(order.total, by_status, _left(order), "" if order.is_selection else query_of(order))


def query_of(order: Order) -> str:
    """Write the filter of an order as a query, with the statuses that its verb takes."""
    return spelled(VERBS[order.verb].narrowed(filter_from_json(order.wanted)))


def asked(order: Order) -> str:
    """Word an order, without a question mark: "Purge 3 jobs"."""
    return VERBS[order.verb].text.question(order.total) % {"count": order.total, "shown": counted(order.total)}


def effect(order: Order) -> str:
    """Say what will happen to the jobs."""
    return VERBS[order.verb].text.effect(order.total) % {"count": order.total, "shown": counted(order.total)}


def _left(order: Order) -> list[tuple[str, str]]:
    verb = VERBS[order.verb]
    found = _of_selection(order, verb) if order.is_selection else _of_filter(filter_from_json(order.wanted), verb)
    return [(labels, why) for labels, why in found if labels]


def _of_selection(order: Order, verb: Verb) -> list[tuple[str, str]]:
    left, gone = order.account["left"], order.account["gone"]
    words = [f"{label} ({left[status]})" for status, label in STATUS_LABELS if left.get(status)]
    missing = ngettext("%(count)d job", "%(count)d jobs", len(gone)) % {"count": len(gone)} if gone else ""
    return [
        (get_text_list(words, gettext("and")), str(verb.text.not_eligible)),
        (missing, gettext("gone or no longer in this list")),
    ]


def _of_filter(wanted: Filter, verb: Verb) -> list[tuple[str, str]]:
    named, taken = wanted.statuses or frozenset(JobStatus), verb.statuses_in(wanted)
    return [
        (_labels(named - verb.eligible_statuses), str(verb.text.not_eligible)),
        (_labels((named & verb.eligible_statuses) - taken), str(verb.text.not_default)),
    ]


def _labels(statuses: frozenset[JobStatus]) -> str:
    return get_text_list([str(label) for status, label in STATUS_LABELS if status in statuses], gettext("and"))


def is_answer(request: HttpRequest) -> bool:
    """Return whether a form comes from the confirmation page."""
    return request.POST.get("confirmed") == "yes"


def holds_nul(wanted: Filter) -> bool:
    """Return whether a filter contains a NUL, which Postgres rejects."""
    return "\\u0000" in json.dumps(filter_to_json(wanted))
