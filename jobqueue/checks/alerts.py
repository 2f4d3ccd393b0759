"""The checks of the setting ``ALERTS``: its rules, types and functions exist, and its messages lead somewhere."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

from django.core.checks import CheckMessage, Error, register
from django.core.checks import Warning as Caution

from jobqueue import conf
from jobqueue.alert_settings import alert_settings, are_on
from jobqueue.handlers.registry import registry
from jobqueue.observe.health import Cause
from jobqueue.observe.health.kinds import critical_types
from jobqueue.policy.nearest import did_you_mean

PLACE = "JOBQUEUE['ALERTS']"


@register(conf.CHECKS)
def check_alerts(**_: Any) -> list[CheckMessage]:
    """Check what the setting names. Other mistakes are errors of the setting."""
    return [*_rules(), *_functions(), *_site(), *_critical()] if conf.is_sound() else []


def _rules() -> Iterator[CheckMessage]:
    for number, one in enumerate(alert_settings().rules.entries):
        there = f"{PLACE}['rules'][{number}]"
        if one["rule"] not in list(Cause):
            sentence = f"{there} is about {one['rule']!r}, which is no rule."
            yield Error(sentence, hint=did_you_mean(one["rule"], list(Cause)), id="jobqueue.E021")
        kind = one.get("type")
        if kind is not None and kind not in registry.names:
            yield Caution(
                f"{there} is about jobs of the type {kind!r}, which has no handler.",
                hint=f"{did_you_mean(kind, registry.names)} If other projects run such jobs, silence jobqueue.W021.",
                id="jobqueue.W021",
            )


def _functions() -> Iterator[CheckMessage]:
    """Check that the modules of functions exist, without importing them."""
    for one in alert_settings().channels:
        path = str(one.options.get("function", ""))
        module = path.rpartition(".")[0]
        if module and not _is_there(module):
            yield Error(
                f"{PLACE}['channels'][{one.name!r}]['function'] names {path!r}, but there is no module {module!r}.",
                hint="Write the dotted path of a function in a module of your project.",
                id="jobqueue.E022",
            )


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except (ImportError, ValueError):
        return False


def _site() -> Iterator[CheckMessage]:
    settings = alert_settings()
    if not settings.site and any(one.via not in ("log", "function") for one in settings.channels):
        yield Caution(
            f"{PLACE} has channels, but no 'site': the links of alerts have no host.",
            hint="Add the address of the admin's site, such as 'site': 'https://shop.example.com'.",
            id="jobqueue.W022",
        )


def _critical() -> Iterator[CheckMessage]:
    if (types := critical_types()) and not are_on():
        yield Caution(
            f"{', '.join(map(repr, sorted(types)))} is marked as critical, but nobody is told of its dead letters.",
            hint=f"Add a channel to {PLACE}.",
            id="jobqueue.W023",
        )
