"""Sights: the findings of one evaluation as alerts see them, each with the key of its problem."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from django.utils import translation

from jobqueue.alert_settings import DELIVERY_TYPE
from jobqueue.clock import to_text
from jobqueue.observe.health import Cause, Finding, Level, Reading, advice, findings, sentence
from jobqueue.observe.health.finding import WithheldJobs
from jobqueue.observe.health.kinds import critical_types
from jobqueue.observe.health.thresholds import critical_dead
from jobqueue.observe.terminal_safe import one_line
from jobqueue.observe.wording import Wording
from jobqueue.policy.redaction import redact_text
from jobqueue.records.alert import AlertFacts

#: The cause whose alerts are looked for every few seconds.
CRITICAL = Cause.CRITICAL_DEAD.value
#: How many alerts of one cause there are. Further problems are one alert together.
MOST_OF_A_CAUSE = 20
_LONGEST = 500
_UNITS = (("day", 86_400), ("hour", 3_600), ("minute", 60), ("second", 1))
_SURROGATES = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Sight:
    """A problem that is there now."""

    key: str
    finding: Finding

    @property
    def level(self) -> int:
        """Return the level as a number, as it is stored."""
        return int(self.finding.level)

    @property
    def names(self) -> tuple[str, str]:
        """Return its queue and type, if there is one of each."""
        queue, kind = (one[0] if len(one) == 1 else "" for one in (self.finding.queues, self.finding.types))
        return queue, kind


def sights(seen: Reading, known: Set[str]) -> list[Sight]:
    """Return the problems of a reading. ``known`` are the keys of open alerts.

    What concerns the jobs that deliver alerts is left out: an alert about them would make more of them.
    """
    found = [part for one in findings(seen.without(DELIVERY_TYPE)) for part in (one.parts or (one,))]
    return [*_folded(_alarming(found), known)]


def critical_sights(seen: Reading, known: Set[str]) -> list[Sight]:
    """Return the dead letters of critical types alone."""
    return [*_folded(_alarming(critical_dead(seen.without(DELIVERY_TYPE))), known)]


def has_critical_types() -> bool:
    """Return whether this release marks a type as critical."""
    return bool(critical_types())


def _alarming(found: Iterable[Finding]) -> list[Finding]:
    return [one for one in found if one.level > Level.NOTICE]


def _folded(found: list[Finding], known: Set[str]) -> Iterator[Sight]:
    """Yield one problem for each key. Of a cause with many, the rest are one.

    Those that have an alert keep it, so that none ends because others came.
    """
    by_cause: dict[Cause, dict[str, Finding]] = {}
    for one in found:
        by_cause.setdefault(one.cause, {}).setdefault(one.key, one)
    for cause, several in by_cause.items():
        order = sorted(several, key=lambda key: (key not in known, key))
        yield from (Sight(key, several[key]) for key in order[:MOST_OF_A_CAUSE])
        if rest := [several[key] for key in order[MOST_OF_A_CAUSE:]]:
            yield Sight(f"{cause.value}:more", _together(rest))


def _together(rest: list[Finding]) -> Finding:
    worst = max(rest, key=lambda one: one.level)
    if len(rest) == 1:
        return worst
    return replace(
        worst,
        queues=tuple(dict.fromkeys(name for one in rest for name in one.queues)),
        types=tuple(dict.fromkeys(name for one in rest for name in one.types)),
        job="",
        measured=None,
        threshold=None,
        jobs=sum(one.jobs for one in rest),
        due=sum(one.due for one in rest),
        parts=tuple(rest),
    )


def facts(one: Finding, now: datetime, examples: tuple[str, ...] = ()) -> AlertFacts:
    """Put a finding into words and names that are safe to send: redacted, in one line, and short."""
    clean = _clean(one)
    queue, kind = (names[0] if len(names) == 1 else "" for names in (clean.queues, clean.types))
    with translation.override(None):
        words = sentence(clean, WORDING, now)
        remedy = advice(clean)
    return AlertFacts(
        cause=one.cause.value,
        level=one.level.word,
        sentence=_short(words),
        advice=remedy,
        measured=one.measured,
        threshold=one.threshold,
        page=one.place.value,
        queue=queue,
        type=kind,
        tenant=clean.tenant,
        job=one.job,
        examples=examples,
    )


def _clean(one: Finding) -> Finding:
    return replace(
        one,
        queues=tuple(map(_safe, one.queues)),
        types=tuple(map(_safe, one.types)),
        job=_safe(one.job),
        worker=_safe(one.worker),
        schedule=_safe(one.schedule),
        tenant=_safe(one.tenant),
        duty=_safe(one.duty),
        reason=_safe(one.reason),
        limit=None if one.limit is None else _clean_limit(one.limit),
        parts=tuple(map(_clean, one.parts)),
    )


def _clean_limit(one: WithheldJobs) -> WithheldJobs:
    limit = replace(one.use.limit, name=_safe(one.use.limit.name), key=_safe(one.use.limit.key))
    use = replace(one.use, limit=limit, value=_safe(one.use.value), running=tuple(map(_safe, one.use.running)))
    stored = one.stored and replace(one.stored, reason=_safe(one.stored.reason), author=_safe(one.stored.author))
    return replace(one, queue=_safe(one.queue), type=_safe(one.type), use=use, stored=stored)


def _safe(text: str) -> str:
    return _short(_SURROGATES.sub("\N{REPLACEMENT CHARACTER}", one_line(redact_text(text[: 4 * _LONGEST]))))


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


# How messages write lengths and moments


def _length(value: timedelta) -> str:
    """Write a length in its two largest units, in words: people read it in an e-mail."""
    seconds, parts = max(int(value.total_seconds()), 0), list[str]()
    for unit, size in _UNITS:
        if seconds >= size or (unit == "second" and not parts):
            number = seconds // size
            parts.append(f"{number} {unit}{'' if number == 1 else 's'}")
            seconds %= size
    return " ".join(parts[:2])


def _moment(value: datetime) -> str:
    return to_text(value)[:19] + "Z"


def _ago(value: datetime, now: datetime) -> str:
    return f"in {_length(value - now)}" if value > now else f"{_length(now - value)} ago"


WORDING = Wording(_moment, _length, _ago, "{:,}".format)
