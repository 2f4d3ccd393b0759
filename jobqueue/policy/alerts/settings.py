"""The reading of the setting ``ALERTS``: its rules, its channels, and how often workers look."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

from jobqueue import durations
from jobqueue.policy.alerts import rules
from jobqueue.policy.alerts.rules import Rule, RuleBook, shown
from jobqueue.policy.nearest import did_you_mean
from jobqueue.records.mistake import Mistake

PLACE = "JOBQUEUE['ALERTS']"
_KEYS = ("every", "rules", "channels", "remind", "resolve_after", "site", "keep")
_CHANNEL_NAME = re.compile(r"[\w.-]{1,50}")
_ADDRESS = re.compile(r"[^@\s]+@[^@\s]+")
_PATH = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)+")
PAGERDUTY = "https://events.pagerduty.com/v2/enqueue"
#: The prefix of a value that is read from the environment of the workers.
ENVIRONMENT = "env:"


@dataclass(frozen=True, slots=True)
class Option:
    """An option of a channel: a test for valid values, and their description."""

    accepts: Callable[[Any], bool]
    wants: str
    is_required: bool = False


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value)


def is_url(value: Any) -> bool:
    """Return whether a value is a URL of the web."""
    if not isinstance(value, str) or not value.isascii() or not value.isprintable() or " " in value:
        return False
    try:
        parts = urlsplit(value)
    except ValueError:
        return False
    return parts.scheme in ("https", "http") and bool(parts.hostname)


def _is_url_or_reference(value: Any) -> bool:
    return is_url(value) or (isinstance(value, str) and value.startswith(ENVIRONMENT) and len(value) > len(ENVIRONMENT))


def _is_addresses(value: Any) -> bool:
    several = isinstance(value, (list, tuple)) and len(value) > 0
    return several and all(isinstance(one, str) and _ADDRESS.fullmatch(one) for one in value)


_URL = Option(_is_url_or_reference, "a URL, or 'env:NAME' for one in the environment of the workers", True)
#: The kinds of channels, with their options.
KINDS: Mapping[str, Mapping[str, Option]] = {
    "log": {},
    "email": {
        "addresses": Option(_is_addresses, "a list of e-mail addresses", True),
        "sender": Option(_is_text, "an e-mail address"),
    },
    "webhook": {
        "url": _URL,
        "secret": Option(_is_text, "a secret 'whsec_…', or 'env:NAME' for one in the environment", True),
    },
    "slack": {"url": _URL},
    "teams": {"url": _URL},
    "pagerduty": {
        "routing_key": Option(_is_text, "a routing key, or 'env:NAME' for one in the environment", True),
        "url": Option(_is_url_or_reference, "a URL, or 'env:NAME' for one in the environment of the workers"),
    },
    "function": {
        "function": Option(
            lambda value: isinstance(value, str) and bool(_PATH.fullmatch(value)), "the dotted path of a function", True
        )
    },
}
_COMMON: Mapping[str, Option] = {
    "via": Option(lambda value: isinstance(value, str) and value in KINDS, "the kind of the channel", True),
    "level": Option(lambda value: value in ("warning", "error"), "'warning' or 'error'"),
    "resolved": Option(lambda value: type(value) is bool, "True or False"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Channel:
    """A channel: its kind, the least level that it tells, whether it tells the end, and the options of its kind."""

    name: str
    via: str
    level: str = "warning"
    resolved: bool = True
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class AlertSettings:
    """The setting, read. ``site`` begins the links, and ``keep`` is how long past alerts are listed."""

    every: timedelta = timedelta(minutes=5)
    site: str = ""
    keep: timedelta = timedelta(days=30)
    rules: RuleBook = field(default_factory=RuleBook)
    channels: tuple[Channel, ...] = ()


def read(given: Mapping[str, Any]) -> AlertSettings:
    """Read a valid setting."""
    lengths = {name: durations.read(given[name]) for name in ("every", "keep") if name in given}
    usual = Rule(name="")
    gone_for = durations.read(given.get("resolve_after", usual.gone_for))
    remind = given.get("remind")
    usual = Rule(name="", gone_for=gone_for, remind=None if remind is None else durations.read(remind))
    return AlertSettings(
        **lengths,
        site=given.get("site", "").rstrip("/"),
        rules=RuleBook(tuple(given.get("rules", ())), usual),
        channels=tuple(_channel(name, one) for name, one in given.get("channels", {}).items()),
    )


def _channel(name: str, given: Mapping[str, Any]) -> Channel:
    common = {key: given[key] for key in _COMMON if key in given}
    return Channel(name=name, options={key: given[key] for key in given if key not in _COMMON}, **common)


def mistakes(given: object) -> Iterator[Mistake]:
    """Yield the mistakes in a value of the setting."""
    if not isinstance(given, dict):
        hint = f"Write {PLACE} = {{'channels': {{'ops': {{'via': 'email', 'addresses': ['ops@example.com']}}}}}}."
        yield Mistake(f"{PLACE} must be a dict, not {shown(given)}.", hint)
        return
    for key in given:
        if key not in _KEYS:
            yield Mistake(f"{PLACE} has the unknown key {shown(key)}.", did_you_mean(key, _KEYS))
    for key, least in (("every", 5), ("resolve_after", 0), ("remind", 60), ("keep", 3_600)):
        if key in given and not (key == "remind" and given[key] is None):
            yield from rules.of_length(f"{PLACE}[{key!r}]", given[key], least)
    if given.get("site", "") != "" and not is_url(given["site"]):
        hint = "It is where your site is reached, such as 'https://shop.example.com'."
        yield Mistake(f"{PLACE}['site'] must be a URL, not {shown(given['site'])}.", hint)
    if "rules" in given:
        yield from rules.mistakes(f"{PLACE}['rules']", given["rules"])
    yield from _of_channels(f"{PLACE}['channels']", given.get("channels", {}))


def _of_channels(place: str, given: object) -> Iterator[Mistake]:
    if not isinstance(given, dict):
        yield Mistake(f"{place} must be a dict of channels by name, not {shown(given)}.", _kinds())
        return
    for name, one in given.items():
        there = f"{place}[{shown(name)}]"
        if not isinstance(name, str) or not _CHANNEL_NAME.fullmatch(name):
            yield Mistake(
                f"{place} has the key {shown(name)}, which is no name of a channel.",
                "Use letters, digits and any of _ . -, at most 50 characters.",
            )
        elif not isinstance(one, dict):
            yield Mistake(f"{there} must be a dict, not {shown(one)}.", _kinds())
        else:
            yield from _of_channel(there, one)


def _of_channel(place: str, given: Mapping[Any, Any]) -> Iterator[Mistake]:
    via = given.get("via")
    if not isinstance(via, str) or via not in KINDS:
        yield Mistake(f"{place}['via'] is {shown(via)}, which is no kind of channel.", did_you_mean(via, KINDS))
        return
    options = {**_COMMON, **KINDS[via]}
    for key, value in given.items():
        if key not in options:
            yield Mistake(f"{place} has the unknown option {shown(key)}.", did_you_mean(key, options))
        elif not options[key].accepts(value):
            # Not the value: it may be a secret.
            yield Mistake(f"{place}[{key!r}] must be {options[key].wants}.", f"It is of type {type(value).__name__}.")
    for key, option in options.items():
        if option.is_required and key not in given:
            yield Mistake(f"{place} lacks {key!r}: {option.wants}.", f"A channel via {via!r} needs it.")


def _kinds() -> str:
    return f"The kinds of channels are {', '.join(KINDS)}."
