"""The schedules that the code declares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from django.conf import settings
from pydantic import ValidationError

from jobqueue.errors import InvalidHandler, InvalidOption, PayloadRefused
from jobqueue.handlers.options import name as check_name
from jobqueue.handlers.registry import JobType
from jobqueue.policy.schedules.rule import Cron, Every, Rule
from jobqueue.schedules.said import said

_declared: dict[str, dict[str, Any]] = {}
_where: dict[str, str] = {}


def declared() -> Mapping[str, dict[str, Any]]:
    """Return what the code says about its schedules, by name."""
    return MappingProxyType(_declared)


def declare(name: str, kind: JobType, rule: Rule, payload: object, given: Mapping[str, Any]) -> None:
    """Declare a schedule. Raises InvalidOption for a wrong rule or option, and InvalidHandler for a wrong payload."""
    check_name("The schedule's name", name)
    if not isinstance(rule, (Cron, Every)):
        raise InvalidOption("schedule", f"takes Cron(…) or Every(…), got {rule!r}")
    try:
        text = kind.payload.dump({} if payload is None else payload)
    except (ValidationError, PayloadRefused) as error:
        raise InvalidHandler(
            f"The payload of the schedule {name!r} does not fit the job type {kind.name!r}: {error}"
        ) from error
    if _where.get(name, kind.where) != kind.where:
        raise InvalidOption("schedule", f"{name!r} is declared twice: for {_where[name]} and for {kind.where}")
    _declared[name] = said(kind, rule, settings.TIME_ZONE, text, given)
    _where[name] = kind.where


def declare_rules(kind: JobType, rules: Rule | Sequence[Rule]) -> None:
    """Declare the rules of ``@job(schedule=…)``: schedules named after the type, with numbers from the second on."""
    listed: Sequence[Rule] = rules if isinstance(rules, (list, tuple)) else [rules]  # type: ignore[list-item]
    for number, rule in enumerate(listed, start=1):
        declare(kind.name if number == 1 else f"{kind.name}-{number}", kind, rule, None, {})


def forget(name: str) -> None:
    """Forget a declared schedule, in tests."""
    _declared.pop(name, None)
    _where.pop(name, None)
