"""The settings dict ``JOBQUEUE``: every key, its default, and what it accepts.

A value is read when it is first asked for, and kept; ``override_settings`` has it read anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.signals import setting_changed


@dataclass(frozen=True, slots=True)
class Setting:
    """One key of ``JOBQUEUE``: its default, whether a value will do, and what would."""

    default: Any
    accepts: Callable[[Any], bool]
    wants: str


def _is_bytes(value: Any) -> bool:
    return type(value) is int and 1 <= value <= 64 * 1024 * 1024


def _is_seconds(value: Any) -> bool:
    return type(value) in (int, float) and 0 < value < 86_400


def _is_capacity(value: Any) -> bool:
    return type(value) is int and value >= 1


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value)


SETTINGS: dict[str, Setting] = {
    # Which entry of DATABASES holds the queue. Anything but the application's own gives up the shared transaction.
    "DATABASE": Setting("default", _is_text, "the alias of an entry in DATABASES"),
    # The dotted path of a backend class; None takes the one made for the database's vendor.
    "BACKEND": Setting(None, lambda value: value is None or _is_text(value), "None or a dotted path"),
    # A payload says what to do and refers to what it needs; what is larger belongs in a table or a file.
    "MAX_PAYLOAD_BYTES": Setting(262_144, _is_bytes, "a whole number of bytes, at most 64 MiB"),
    # A result is read by people and by the admin.
    "MAX_RESULT_BYTES": Setting(262_144, _is_bytes, "a whole number of bytes, at most 64 MiB"),
    # How long a write waits for SQLite's only write lock before DatabaseBusy.
    "BUSY_TIMEOUT": Setting(30.0, _is_seconds, "seconds, above 0 and below a day"),
    # How long an attempt may take whose type says nothing of it: long enough for honest work, short enough that a hung
    # job is noticed.
    "TIMEOUT": Setting(300.0, _is_seconds, "seconds, above 0 and below a day"),
    # How many jobs may wait in one queue before `jobqueue status` calls it an error; at 80 % it warns. None is refused.
    "CAPACITY": Setting(10_000, _is_capacity, "a whole number of jobs, from 1 on"),
    # How the log of a worker is written: as sentences for people, or as one JSON object a line for machines.
    "LOG_FORMAT": Setting("text", lambda value: value in ("text", "json"), "'text' or 'json'"),
    # Where the wake-up sockets for SQLite live; None takes a private folder in the system's runtime directory.
    "RUNTIME_DIR": Setting(None, lambda value: value is None or _is_text(value), "None or a folder"),
}


def given() -> dict[str, Any]:
    """Return the user's own ``JOBQUEUE`` dict, unchecked."""
    value = getattr(settings, "JOBQUEUE", {})
    if not isinstance(value, dict):
        raise ImproperlyConfigured(f"JOBQUEUE must be a dict, not {type(value).__name__}.")
    return value


@cache
def get(key: str) -> Any:
    """Return a setting's value; a value that will not do stops the caller with one sentence."""
    setting = SETTINGS[key]
    value = given().get(key, setting.default)
    if not setting.accepts(value):
        raise ImproperlyConfigured(complaint(key, value))
    return value


def complaint(key: str, value: Any) -> str:
    """Say what is wrong with a value."""
    return f"JOBQUEUE[{key!r}] must be {SETTINGS[key].wants}, not {value!r}."


def mistakes() -> Iterator[tuple[str, Any]]:
    """Yield the known keys whose values will not do."""
    for key, value in given().items():
        if key in SETTINGS and not SETTINGS[key].accepts(value):
            yield key, value


def _forget(*, setting: str, **_: object) -> None:
    if setting == "JOBQUEUE":
        get.cache_clear()


setting_changed.connect(_forget)
