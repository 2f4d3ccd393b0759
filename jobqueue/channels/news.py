"""News of alerts as channels tell them: each alert with its lines and its link into the admin."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from django.contrib.admin.utils import quote
from django.urls import reverse

from jobqueue.clock import from_text
from jobqueue.policy.alerts.rules import MEASURES
from jobqueue.records.alert import AlertFacts, News, facts_of

_WORDS = {News.FIRED: "", News.RESOLVED: "Resolved", News.REMINDER: "Still there", News.TEST: "Test"}
#: Names that need no quotes in a search of the admin.
_PLAIN = re.compile(r"[\w./@-]+")
_STATUS_OF = {"queued_jobs": "queued", "running_jobs": "in_progress"}
_MODEL_OF = {
    "workers": "worker",
    "queues": "queue",
    "schedules": "schedule",
    "dashboard": "dashboard",
    "dead_letters": "deadletter",
}


@dataclass(frozen=True, slots=True)
class DeliveryAttempt:
    """One attempt of a delivery: the delivery's id, which repetitions share, and the number of the attempt."""

    id: str
    number: int = 1


@dataclass(frozen=True, slots=True)
class OneAlert:
    """An alert as it is told. ``given`` is its JSON data."""

    id: str
    key: str
    facts: AlertFacts
    since: str
    resolved_at: str
    link: str
    given: Mapping[str, Any]

    @property
    def title(self) -> str:
        """Return the level and what is wrong."""
        return f"{self.facts.level}: {self.facts.sentence}"

    @property
    def against(self) -> str:
        """Return how much was measured against what, if the rule compares numbers."""
        facts = self.facts
        if facts.measured is None or facts.threshold is None:
            return ""
        word = MEASURES[facts.cause].word if facts.cause in MEASURES else "against"
        return f"{facts.measured:,.6g}, alerts {word} {facts.threshold:,.6g}"

    @property
    def details(self) -> list[tuple[str, str]]:
        """Return the labelled lines under the title."""
        lines = [
            ("Since", self.since),
            ("Resolved", self.resolved_at),
            ("Measured", self.against),
            ("What to do", "" if self.resolved_at else self.facts.advice),
            ("Examples", ", ".join(self.facts.examples)),
        ]
        return [(label, text) for label, text in lines if text]


@dataclass(frozen=True, slots=True)
class AlertNews:
    """News of several alerts, told together."""

    kind: News
    alerts: tuple[OneAlert, ...]

    @property
    def title(self) -> str:
        """Return one line that says it all, or says how much there is."""
        first = self.alerts[0].title if self.alerts else "Nothing"
        more = f" (and {len(self.alerts) - 1} more)" if len(self.alerts) > 1 else ""
        word = _WORDS[self.kind]
        return f"{word}: {first}{more}" if word else f"{first}{more}"

    @property
    def level(self) -> str:
        """Return the worst level."""
        return "error" if any(one.facts.level == "error" for one in self.alerts) else "warning"

    def text(self) -> str:
        """Return everything as plain text."""
        word = _WORDS[self.kind]
        return "\n\n".join(_text(one, word) for one in self.alerts)


def _text(one: OneAlert, word: str) -> str:
    lines = [f"{word}: {one.title}" if word else one.title]
    lines += [f"{label}: {text}" for label, text in one.details]
    return "\n".join([*lines, *([one.link] if one.link else [])])


def read(kind: News, alerts: Sequence[Mapping[str, Any]], site: str) -> AlertNews:
    """Read the JSON data of a delivery. Links begin with the address of the site, if it is set."""
    return AlertNews(kind, tuple(_one(given, site) for given in alerts))


def _one(given: Mapping[str, Any], site: str) -> OneAlert:
    facts, path = facts_of(given), ""
    with suppress(Exception):  # no admin, no such page, or URLs that fail: an alert is told anyway
        path = path_of(facts)
    link = f"{site}{path}" if path else ""
    return OneAlert(
        id=str(given.get("id", "")),
        key=str(given.get("key", "")),
        facts=facts,
        since=_moment(given.get("since")),
        resolved_at=_moment(given.get("resolved_at")),
        link=link,
        given={**given, "link": link},
    )


def path_of(facts: AlertFacts) -> str:
    """Return the path of the admin's page that shows more. Raises NoReverseMatch."""
    if facts.page == "job" and facts.job:
        return reverse("admin:jobqueue_job_change", args=[quote(facts.job)])
    if facts.page == "dead_letters":
        query = {"of": facts.type} if facts.type else {}
    elif facts.page in _STATUS_OF:
        names = {"status": _STATUS_OF[facts.page], "queue": facts.queue, "type": facts.type, "tenant": facts.tenant}
        query = {"q": " ".join(f"{name}:{value}" for name, value in names.items() if _PLAIN.fullmatch(value))}
    else:
        query = {
            name: value for name in ("queue", "type") if facts.page == "dashboard" and (value := getattr(facts, name))
        }
    there = reverse(f"admin:jobqueue_{_MODEL_OF.get(facts.page, 'job')}_changelist")
    return f"{there}?{urlencode(query, errors='replace')}" if query else there


def _moment(given: Any) -> str:
    """Write a moment to the second."""
    try:
        moment: datetime = from_text(given)
    except (TypeError, ValueError, AttributeError):
        return ""
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"
