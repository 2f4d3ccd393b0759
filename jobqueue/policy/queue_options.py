"""The setting ``QUEUES``: which options a queue may have, and which entry applies to it."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, NamedTuple

from jobqueue.errors import InvalidOption
from jobqueue.policy.limits.declared_limits import checked
from jobqueue.policy.nearest import did_you_mean
from jobqueue.records.mistake import Mistake
from jobqueue.records.queue_options import QueueOptions, WhenFull

_ANY = "*"
#: As the name of a queue, with any number of stars.
_NAME = re.compile(r"[\w.:/@*-]{1,100}")
#: As the name of a field of a payload.
_KEY = re.compile(r"[^\W\d]\w{0,99}")
#: The weights of the lightest and the heaviest turns.
LEAST_WEIGHT, MOST_WEIGHT = 0.001, 1_000


class Option(NamedTuple):
    """An option of a queue: a test for valid values, their description, and the conversion of a valid value."""

    accepts: Callable[[Any], bool]
    wants: str
    converted: Callable[[Any], Any] = lambda value: value


#: Each is a field of ``QueueOptions``.
OPTIONS: dict[str, Option] = {
    "capacity": Option(
        lambda value: value is None or (type(value) is int and 1 <= value <= 1_000_000_000),
        "None or a whole number of jobs, from 1 to 1,000,000,000",
    ),
    "when_full": Option(
        lambda value: isinstance(value, str) and value in list(WhenFull),
        f"one of {', '.join(map(repr, map(str, WhenFull)))}",
        WhenFull,
    ),
    "block_for": Option(
        lambda value: type(value) in (int, float) and 0 < value <= 3_600, "seconds, above 0 and at most an hour"
    ),
    "ordered": Option(
        lambda value: type(value) is bool or (isinstance(value, str) and _is_key_of_lanes(value)),
        "True, or the name of the payload's field whose values each have a lane, or 'tenant'",
    ),
    "strict": Option(lambda value: type(value) is bool, "True or False"),
    "fair": Option(
        lambda value: value is None or (isinstance(value, str) and bool(_KEY.fullmatch(value))),
        "the name of the payload's field whose values take turns, or 'tenant'",
    ),
    "weights": Option(
        lambda value: isinstance(value, Mapping) and all(map(_is_weight, value.items())),
        f"a dict of values and numbers from {LEAST_WEIGHT:g} to {MOST_WEIGHT:,}",
        lambda value: {str(key): float(weight) for key, weight in value.items()},
    ),
    "limits": Option(lambda value: not _fault_of_limits(value), "a list of Concurrency and Rate", tuple),
}


def options_of(queue: str, given: Mapping[str, Mapping[str, Any]]) -> QueueOptions:
    """Return the options of a queue from a valid setting.

    The entry with exactly its name applies. Otherwise, of the patterns that match, the one with the most characters
    other than stars applies, and of several such, the first. Entries aren't merged.
    """
    name = entry_of(queue, given)
    entry = {} if name is None else given[name]
    return QueueOptions(**{name: OPTIONS[name].converted(value) for name, value in entry.items()})


def entry_of(queue: str, names: Collection[str]) -> str | None:
    """Return which of these names and patterns applies to a queue."""
    if queue in names:
        return queue
    matching = [name for name in names if _ANY in name and _matches(name, queue)]
    return max(matching, key=lambda name: len(name) - name.count(_ANY)) if matching else None


def _is_key_of_lanes(value: str) -> bool:
    """Return whether a value may name what lanes are made of. Workspaces of two tenants may have one name."""
    return value != "workspace" and bool(_KEY.fullmatch(value))


def _is_weight(item: tuple[object, object]) -> bool:
    """Return whether a value of a fair queue's field has a valid weight."""
    key, weight = item
    is_number = isinstance(weight, (int, float)) and not isinstance(weight, bool)
    return isinstance(key, (str, int)) and is_number and LEAST_WEIGHT <= weight <= MOST_WEIGHT  # type: ignore[operator]


def _fault_of_limits(given: object) -> str:
    """Return what is wrong with declared limits, or an empty text."""
    try:
        checked("limits", given)
    except InvalidOption as error:
        return str(error)
    return ""


def _matches(pattern: str, queue: str) -> bool:
    """Return whether a pattern matches, in which a star stands for any characters, or for none."""
    return re.fullmatch(".*".join(map(re.escape, pattern.split(_ANY))), queue) is not None


def mistakes(given: object) -> Iterator[Mistake]:
    """Yield the mistakes in a value of the setting."""
    place = "JOBQUEUE['QUEUES']"
    if not isinstance(given, dict):
        hint = f"Write {place} = {{'imports': {{'capacity': 1_000}}}}."
        yield Mistake(f"{place} must be a dict of queues and their options, not {_shown(given)}.", hint)
        return
    for name, entry in given.items():
        yield from _of_entry(place, name, entry)


def _of_entry(place: str, name: object, entry: object) -> Iterator[Mistake]:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        hint = "Use letters, digits and any of _ . : / @ - for a name, and * in a pattern; at most 100 characters."
        yield Mistake(f"{place} has the key {_shown(name)}, which is no name of a queue and no pattern.", hint)
        return
    there = f"{place}[{name!r}]"
    if not isinstance(entry, dict):
        yield Mistake(f"{there} must be a dict of options, not {_shown(entry)}.", _known())
        return
    for option, value in entry.items():
        if option not in OPTIONS:
            yield Mistake(f"{there} has the unknown option {_shown(option)}.", did_you_mean(option, OPTIONS))
        elif not OPTIONS[option].accepts(value):
            sentence = f"{there}[{option!r}] must be {OPTIONS[option].wants}, not {_shown(value)}."
            yield Mistake(sentence, _nearest(option, value))
    if entry.get("when_full", WhenFull.ACCEPT) != WhenFull.ACCEPT and entry.get("capacity") is None:
        sentence = f"{there} has 'when_full', but no 'capacity': the queue would never be full."
        yield Mistake(sentence, "Add 'capacity', or leave out 'when_full'. Entries for several queues are not merged.")
    if "block_for" in entry and entry.get("when_full") != WhenFull.BLOCK:
        sentence = f"{there} has 'block_for', but its producers don't wait."
        yield Mistake(sentence, "Add 'when_full': 'block', or leave out 'block_for'.")

    if entry.get("ordered") and entry.get("fair"):
        sentence = f"{there} has 'ordered' and 'fair', which contradict each other: a lane has one order."
        yield Mistake(sentence, "Leave out one of them, or use two queues.")
    if "weights" in entry and not entry.get("fair"):
        sentence = f"{there} has 'weights', but no 'fair': its jobs take no turns."
        yield Mistake(sentence, "Add 'fair', or leave out 'weights'. Entries for several queues are not merged.")
    if entry.get("strict") and not entry.get("ordered"):
        sentence = f"{there} has 'strict', but no 'ordered': it has no lane that could wait."
        yield Mistake(sentence, "Add 'ordered', or leave out 'strict'. Entries for several queues are not merged.")


def _nearest(option: str, value: object) -> str:
    if option == "limits":
        return f"The option {_fault_of_limits(value)}."
    if option == "when_full" and isinstance(value, str):
        return did_you_mean(value, map(str, WhenFull))
    if option == "weights" and isinstance(value, Mapping):
        wrong = next(item for item in value.items() if not _is_weight(item))
        return f"The weight of {_shown(wrong[0])} is {_shown(wrong[1])}. The default is 1."
    return f"The default is {getattr(QueueOptions(), option)!r}."


def _known() -> str:
    return f"The options are {', '.join(OPTIONS)}."


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"
