"""The settings dict ``JOBQUEUE``: every key, its default, and what it accepts.

A value is read when it is first asked for, and kept; ``override_settings`` has it read anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from ipaddress import ip_network
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.signals import setting_changed

from jobqueue.policy.nearest import did_you_mean

#: The tag of the system checks that judge what is here.
CHECKS = "jobqueue"


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


def _is_names(value: Any) -> bool:
    return isinstance(value, (list, tuple, set, frozenset)) and all(map(_is_text, value))


def _is_folder(value: Any) -> bool:
    return value is None or (isinstance(value, (str, Path)) and Path(value).is_absolute())


def _is_folder_there(value: Any) -> bool:
    return value is None or (_is_folder(value) and Path(value).is_dir())


def _is_networks(value: Any) -> bool:
    try:
        return _is_names(value) and all(ip_network(one) for one in value)
    except ValueError:
        return False


def _is_count(value: Any) -> bool:
    return type(value) is int and 1 <= value <= 1_000_000


def _is_long(value: Any) -> bool:
    return type(value) in (int, float) and 0 <= value <= 86_400 * 3_650


SETTINGS: dict[str, Setting] = {
    # Which entry of DATABASES holds the queue. Anything but the application's own gives up the shared transaction.
    "DATABASE": Setting("default", _is_text, "the alias of an entry in DATABASES"),
    # Which entry of DATABASES the jobs stored here are relayed to, to be run there; None has them run from here.
    "RELAY_TO": Setting(None, lambda value: value is None or _is_text(value), "None or an alias in DATABASES"),
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
    # Whether web processes start a worker beside them; most deployments have one of its own, which is independent.
    "EMBEDDED": Setting(False, lambda value: type(value) is bool, "True or False"),
    # How the log of a worker is written: as sentences for people, or as one JSON object a line for machines.
    "LOG_FORMAT": Setting("text", lambda value: value in ("text", "json"), "'text' or 'json'"),
    # Where the wake-up sockets for SQLite live; None takes a private folder in the system's runtime directory.
    "RUNTIME_DIR": Setting(None, _is_folder_there, "None or the absolute path of a folder that is there"),
    # What follows is read by the apps of jobqueue.contrib alone.
    #
    # The folder that file jobs cannot leave. None: there is none, and every file job is refused.
    "FILES_ROOT": Setting(None, _is_folder, "None or the absolute path of a folder"),
    # The management commands that run_command runs. None by default: a row in a table shall not name what is run.
    "COMMANDS": Setting((), _is_names, "a list of names of management commands"),
    # How much of a command's output is kept, its end: enough to see what it did, and what it complained of last.
    "COMMAND_OUTPUT_BYTES": Setting(16_384, _is_bytes, "a whole number of bytes, at most 64 MiB"),
    # Whether a command that can be queued is queued where no terminal is attached, as in hooks and cron. Off: a script
    # that waits for what the command did would go on too early.
    "COMMANDS_UNATTENDED": Setting(True, lambda value: isinstance(value, bool), "True or False"),
    # Private networks that webhooks may reach; addresses in them may also be spoken to without TLS.
    "WEBHOOK_NETWORKS": Setting((), _is_networks, "a list of networks such as '10.0.0.0/8'"),
    # How long one delivery may take from the connection to the last byte of the answer: receivers should queue, too.
    "WEBHOOK_TIMEOUT": Setting(10.0, _is_seconds, "seconds, above 0 and below a day"),
    # How much of an answer is read and kept: enough for an error message, and nothing for who sends without end.
    "WEBHOOK_ANSWER_BYTES": Setting(1_024, _is_bytes, "a whole number of bytes, at most 64 MiB"),
    # After how many failures in a row an endpoint is disabled, and over how long they must stretch: an outage of
    # minutes disables none, however busy it is.
    "WEBHOOK_MAX_FAILURES": Setting(20, _is_count, "a whole number from 1 to 1,000,000"),
    "WEBHOOK_FAILING_FOR": Setting(3_600.0, _is_long, "seconds, at most ten years"),
    # How long the secret before the last one signs too, so that receivers can change over.
    "WEBHOOK_ROTATION": Setting(86_400.0, _is_long, "seconds, at most ten years"),
    # How long the log of deliveries is kept.
    "WEBHOOK_LOG_FOR": Setting(2_592_000.0, _is_long, "seconds, at most ten years"),
    # What sends the queued e-mails: the path of a backend, or its alias where MAILERS is set.
    "EMAIL_VIA": Setting(
        "django.core.mail.backends.smtp.EmailBackend", _is_text, "the dotted path of an e-mail backend, or its alias"
    ),
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


def unknown_keys() -> list[Any]:
    """List the keys that do not exist."""
    return [key for key in given() if key not in SETTINGS]


def refuse_unknown_keys() -> None:
    """Stop who begins to use the queue where a misspelt key would leave its default in force unseen."""
    for key in unknown_keys():
        raise ImproperlyConfigured(f"JOBQUEUE has the unknown key {key!r}. {did_you_mean(key, SETTINGS)}")


def mistakes() -> Iterator[tuple[str, Any]]:
    """Yield the known keys whose values will not do."""
    for key, value in given().items():
        if key in SETTINGS and not SETTINGS[key].accepts(value):
            yield key, value


def is_sound() -> bool:
    """Whether each key exists and has a value that will do."""
    try:
        return not unknown_keys() and not [*mistakes()]
    except ImproperlyConfigured:
        return False


def _forget(*, setting: str, **_: object) -> None:
    if setting == "JOBQUEUE":
        get.cache_clear()


setting_changed.connect(_forget)
