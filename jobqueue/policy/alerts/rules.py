"""The rules of alerts: thresholds and durations by cause, queue and type."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from jobqueue import durations
from jobqueue.policy.nearest import did_you_mean
from jobqueue.records.mistake import Mistake

#: The levels of a rule. Notices are shown, but alert nobody. What is off isn't even looked for.
LEVELS = ("off", "notice", "warning", "error")
OFF = "off"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """What an alert of one cause takes, for some queue and type, or for all.

    ``threshold`` and ``least``, the least number of samples, are set for causes that compare numbers. An alert fires
    after its problem has lasted ``wait``, and is over after the problem was gone for ``gone_for``.
    """

    name: str
    queue: str = ""
    type: str = ""
    threshold: float | None = None
    least: int = 0
    level: str = ""
    wait: timedelta = timedelta(minutes=1)
    gone_for: timedelta = timedelta(minutes=5)
    remind: timedelta | None = None


@dataclass(frozen=True, slots=True)
class Measure:
    """How a cause is measured: the word of its threshold, what the number is, its bounds, and by which names."""

    word: str
    wants: str
    most: float
    by: tuple[str, ...] = ("queue", "type")


#: The causes that compare a number with a threshold.
MEASURES: Mapping[str, Measure] = {
    "queue_deep": Measure("above", "a number of due jobs", 1e9),
    "overdue": Measure("above", "seconds, at most ten years", 86_400 * 3_650),
    "dead_letters": Measure("above", "a number of dead letters", 1e9),
    "success_low": Measure("below", "a share from 0 to 1", 1, ("type",)),
    "slow": Measure("above", "seconds, at most ten years", 86_400 * 3_650, ("type",)),
}
#: The rules without an entry of the setting.
DEFAULTS: Mapping[str, Rule] = {
    "queue_deep": Rule(name="queue_deep", threshold=1_000, level="warning"),
    "overdue": Rule(name="overdue", threshold=3_600, level="warning"),
    "dead_letters": Rule(name="dead_letters", threshold=10, level="error"),
    "success_low": Rule(name="success_low", threshold=0.95, least=100, level="error"),
    "slow": Rule(name="slow", threshold=10, least=100, level="warning"),
    "critical_dead": Rule(name="critical_dead", level="error", wait=timedelta(0)),
    # Workers recover such jobs within a minute.
    "held_by_dead": Rule(name="held_by_dead", wait=timedelta(minutes=3)),
}
_LENGTHS = {"for": "wait", "resolve_after": "gone_for", "remind": "remind"}
_KEYS = ("rule", "queue", "type", "above", "below", "least", "level", *_LENGTHS)


@dataclass(frozen=True)
class RuleBook:
    """All rules: those of the setting over the defaults."""

    entries: tuple[Mapping[str, Any], ...] = ()
    usual: Rule = field(default_factory=lambda: Rule(name=""))

    def rule(self, name: str, queue: str = "", type: str = "") -> Rule:  # noqa: A002 - as the column is called
        """Return the rule for a queue and type. Entries that name more of them go before those that name less.

        ``queue`` and ``type`` of the rule are those that the entry names which goes before all others.
        """
        default = DEFAULTS.get(name, Rule(name=name))
        plain = Rule(name=name)
        found = replace(
            default,
            gone_for=self.usual.gone_for if default.gone_for == plain.gone_for else default.gone_for,
            remind=self.usual.remind,
        )
        names = {"queue": queue, "type": type}
        mine = [
            one
            for one in self.entries
            if one["rule"] == name and all(one.get(key) in (None, value) for key, value in names.items())
        ]
        for one in sorted(mine, key=_weight):
            found = replace(found, **_values(one), queue=one.get("queue") or "", type=one.get("type") or "")
        return found


def _weight(entry: Mapping[str, Any]) -> int:
    """Return how much an entry names: of two that name one thing, the type is the narrower."""
    return (entry.get("queue") is not None) + 2 * (entry.get("type") is not None)


def _values(entry: Mapping[str, Any]) -> dict[str, Any]:
    values: dict[str, Any] = {name: entry[name] for name in ("least", "level") if name in entry}
    for key in ("above", "below"):
        if key in entry:
            values["threshold"] = float(entry[key])
    for key, name in _LENGTHS.items():
        if key in entry:
            values[name] = None if entry[key] is None else durations.read(entry[key])
    return values


def mistakes(place: str, given: object) -> Iterator[Mistake]:
    """Yield the mistakes in the list of rules, whose names are checked where the causes are known."""
    if not isinstance(given, (list, tuple)):
        yield Mistake(
            f"{place} must be a list of dicts, not {shown(given)}.",
            f"Write {place} = [{{'rule': 'queue_deep', 'queue': 'imports', 'above': 50_000}}].",
        )
        return
    seen: dict[tuple[object, ...], int] = {}
    for number, one in enumerate(given):
        there = f"{place}[{number}]"
        faults = [*_of_rule(there, one)]
        yield from faults
        if not faults:
            about = (one["rule"], one.get("queue"), one.get("type"))
            if about in seen:
                yield Mistake(
                    f"{there} is about the same jobs as {place}[{seen[about]}].", "Write one rule instead of two."
                )
            seen[about] = number


def _of_rule(place: str, given: object) -> Iterator[Mistake]:
    if not isinstance(given, dict):
        yield Mistake(f"{place} must be a dict, not {shown(given)}.", f"Its keys are {', '.join(_KEYS)}.")
        return
    for key in given:
        if key not in _KEYS:
            yield Mistake(f"{place} has the unknown key {shown(key)}.", did_you_mean(key, _KEYS))
    name = given.get("rule")
    if not isinstance(name, str) or not name:
        yield Mistake(f"{place}['rule'] must be the name of a rule, not {shown(name)}.", "An example is 'queue_deep'.")
        return
    for key in ("queue", "type"):
        if given.get(key) is not None and (not isinstance(given[key], str) or not given[key]):
            yield Mistake(f"{place}[{key!r}] must be a name, not {shown(given[key])}.", "Leave it out for all.")
    yield from _of_numbers(place, given, MEASURES.get(name))
    if "level" in given and given["level"] not in LEVELS:
        level = given["level"]
        yield Mistake(f"{place}['level'] is {shown(level)}, which is no level.", did_you_mean(level, LEVELS))
    for key in _LENGTHS:
        if key in given and not (key == "remind" and given[key] is None):
            yield from of_length(f"{place}[{key!r}]", given[key])


def _of_numbers(place: str, given: Mapping[str, Any], measure: Measure | None) -> Iterator[Mistake]:
    name = given["rule"]
    for key in ("above", "below", "least"):
        if key not in given:
            continue
        value = given[key]
        if measure is None or key not in (measure.word, "least"):
            what = "compares no number" if measure is None else f"has the threshold {measure.word!r}"
            yield Mistake(
                f"{place} has {key!r}, but the rule {shown(name)} {what}.",
                f"Rules with a threshold are {', '.join(MEASURES)}.",
            )
        elif key == "least":
            if type(value) is not int or not 0 <= value <= 1_000_000_000:
                yield Mistake(f"{place}['least'] must be a whole number of attempts, not {shown(value)}.", "")
        elif type(value) not in (int, float) or not 0 <= value <= measure.most:
            yield Mistake(f"{place}[{key!r}] must be {measure.wants}, not {shown(value)}.", _default(name))
    for key in ("queue", "type"):
        if measure is not None and given.get(key) is not None and key not in measure.by:
            yield Mistake(
                f"{place} has {key!r}, but the rule {shown(name)} is measured by {' and '.join(measure.by)}.",
                f"Leave out {key!r}.",
            )


def _default(name: str) -> str:
    return f"The default is {DEFAULTS[name].threshold:g}."


def of_length(place: str, value: object, least: float = 0) -> Iterator[Mistake]:
    """Yield the mistake in a length of time."""
    try:
        length = durations.read(value)
    except ValueError as error:
        yield Mistake(f"{place} {error}.", "Write seconds or a timedelta.")
        return
    if length.total_seconds() < least:
        yield Mistake(f"{place} must be at least {least:g} seconds, not {shown(value)}.", "")


def shown(value: object) -> str:
    """Return a value as a message shows it."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"
