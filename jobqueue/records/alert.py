"""Alerts: problems that lasted long enough to tell somebody, what was told of them, and silences."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any


class AlertState(StrEnum):
    """Whether an alert waits until its problem has lasted, is firing, or is over."""

    PENDING = "pending"
    FIRING = "firing"
    RESOLVED = "resolved"


class News(StrEnum):
    """What a message tells of an alert."""

    FIRED = "fired"
    RESOLVED = "resolved"
    REMINDER = "reminder"
    TEST = "test"


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertFacts:
    """What an alert is about. It has names and ids, but no payload.

    ``measured`` and ``threshold`` are set if a rule compares two numbers. ``page`` names the page of the admin that
    shows more, narrowed to the queue, type, tenant or job if there is one.
    """

    cause: str
    level: str
    sentence: str
    advice: str = ""
    measured: float | None = None
    threshold: float | None = None
    page: str = ""
    queue: str = ""
    type: str = ""
    tenant: str = ""
    job: str = ""
    examples: tuple[str, ...] = ()

    def document(self) -> dict[str, Any]:
        """Return the facts as JSON data."""
        return asdict(self) | {"examples": list(self.examples)}


_TEXTS = ("cause", "level", "sentence", "advice", "page", "queue", "type", "tenant", "job")


def facts_of(given: Any) -> AlertFacts:
    """Read facts from JSON data. Values in a form that another program wrote are left out."""
    data = given if isinstance(given, dict) else {}
    texts = {name: str(data[name]) if isinstance(data.get(name), str) else "" for name in _TEXTS}
    numbers = {name: _number(data.get(name)) for name in ("measured", "threshold")}
    examples = data.get("examples")
    ids = tuple(str(one) for one in examples if isinstance(one, str)) if isinstance(examples, list) else ()
    return AlertFacts(**texts, **numbers, examples=ids)  # type: ignore[arg-type]


def _number(given: Any) -> float | None:
    if type(given) not in (int, float) or abs(given) > 1e15:
        return None
    return float(given)


@dataclass(frozen=True, slots=True)
class SentTo:
    """A delivery of an alert: its channel, what it tells, and the job that delivers it."""

    channel: str
    news: str
    job_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertRecord:
    """One alert, from the first sight of its problem to its end.

    ``key`` names the problem, and stays the same if it comes back. ``missing_since`` is when it was first not found any
    more. ``told_at`` is when somebody was told that it fires, and ``reminded_at`` when for the last time.
    """

    id: str
    key: str
    state: AlertState
    level: int
    facts: AlertFacts
    began_at: datetime
    seen_at: datetime
    fired_at: datetime | None = None
    missing_since: datetime | None = None
    told_at: datetime | None = None
    reminded_at: datetime | None = None
    resolved_at: datetime | None = None
    revision: int = 0
    sent: tuple[SentTo, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertChange:
    """A change of an alert: the row before, or ``None`` if it is new, and the row after, or ``None`` to delete it."""

    before: AlertRecord | None
    after: AlertRecord | None
    news: News | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Silence:
    """Until when nobody is told of an alert, or of all alerts of a rule. ``key`` is the alert's key, or the rule."""

    key: str
    until: datetime
    reason: str
    author: str = ""
    made_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Message:
    """Several alerts that are told together."""

    news: News
    alerts: tuple[AlertRecord, ...] = field(default_factory=tuple)
