"""The reading of retention rules as a user writes them: a list of dicts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

from jobqueue import durations
from jobqueue.policy.nearest import did_you_mean
from jobqueue.policy.retention import ENDED, STORAGE, Rule
from jobqueue.states import JobStatus

_KEYS = ("status", "type", "queue", "keep", "keep_last", "archive")
_ENDED = tuple(status.value for status in ENDED)
#: An alias of a storage, and a folder in it.
_STORAGE = re.compile(re.escape(STORAGE) + r"[^/\s]+(/[^/\s.][^/\s]*)*/?")
#: A site keeps a week of what it did, and a month of what somebody stopped. Dead letters wait for an operator.
DEFAULT: tuple[dict[str, Any], ...] = (
    {"status": "completed", "keep": 604_800},
    {"status": "failed", "keep": 2_592_000},
)


def read(given: Any) -> tuple[Rule, ...]:
    """Return the rules. Raise ValueError, in one sentence, for the first mistake."""
    if not isinstance(given, (list, tuple)):
        raise ValueError(f"it must be a list of dicts, not {type(given).__name__}")
    rules = tuple(_rule(number, one) for number, one in enumerate(given, 1))
    _refuse_repeated(rules)
    return rules


def _rule(number: int, given: Any) -> Rule:
    if not isinstance(given, Mapping):
        raise ValueError(f"rule {number} must be a dict, not {type(given).__name__}")
    for key in given:
        if key not in _KEYS:
            raise ValueError(f"rule {number} has the unknown key {key!r}. {did_you_mean(key, _KEYS)}")
    status = given.get("status")
    if not isinstance(status, str) or status not in _ENDED:
        raise ValueError(f"the 'status' of rule {number} is {status!r}. {did_you_mean(status, _ENDED)}")
    if "keep" not in given and "keep_last" not in given:
        raise ValueError(f"rule {number} needs 'keep' or 'keep_last'; 'keep': None keeps its jobs for ever")
    return Rule(
        status=JobStatus(status),
        keep=_age(number, given.get("keep")),
        keep_last=_count(number, given.get("keep_last")),
        type=_name(number, given, "type"),
        queue=_name(number, given, "queue"),
        archive=_archive(number, given.get("archive")),
    )


def _age(number: int, given: Any) -> timedelta | None:
    try:
        return None if given is None else durations.read(given)
    except ValueError as error:
        raise ValueError(f"the 'keep' of rule {number} {error}") from error


def _count(number: int, given: Any) -> int | None:
    if given is None or (type(given) is int and given >= 0):
        return given
    raise ValueError(f"the 'keep_last' of rule {number} must be a whole number of jobs, not {given!r}")


def _name(number: int, given: Mapping[str, Any], key: str) -> str | None:
    name = given.get(key)
    if name is None or (isinstance(name, str) and name):
        return name
    raise ValueError(f"the {key!r} of rule {number} must be a name, not {name!r}")


def _archive(number: int, given: Any) -> str | None:
    if given is None or (isinstance(given, str) and _STORAGE.fullmatch(given)):
        return given
    if isinstance(given, (str, Path)) and Path(given).is_absolute():
        return str(given)
    raise ValueError(
        f"the 'archive' of rule {number} must be the absolute path of a folder, or {STORAGE!r} with a name in "
        f"STORAGES, not {given!r}"
    )


def _refuse_repeated(rules: Iterable[Rule]) -> None:
    seen: dict[tuple[object, ...], int] = {}
    for number, rule in enumerate(rules, 1):
        about = (rule.status, rule.type, rule.queue)
        if about in seen:
            raise ValueError(f"rules {seen[about]} and {number} are about the same jobs")
        seen[about] = number
