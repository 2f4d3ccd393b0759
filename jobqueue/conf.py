"""The ``JOBQUEUE`` settings: every key, its default and the values it accepts.

A value is read at its first use and cached. ``override_settings`` clears the cache.
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

from jobqueue.policy import queue_options, retention_rules
from jobqueue.policy.alerts import settings as alert_settings
from jobqueue.policy.link_template import FIELDS, obstacle
from jobqueue.policy.nearest import did_you_mean
from jobqueue.records.mistake import Mistake

#: The tag of the system checks.
CHECKS = "jobqueue"


@dataclass(frozen=True, slots=True)
class Setting:
    """A key of ``JOBQUEUE``: its default, a test for valid values, and their description."""

    default: Any
    accepts: Callable[[Any], bool]
    wants: str
    #: Yields the mistakes in a value, for settings that have several parts.
    mistakes: Callable[[Any], Iterator[Mistake]] | None = None


def _is_bytes(value: Any) -> bool:
    return type(value) is int and 1 <= value <= 64 * 1024 * 1024


def _is_seconds(value: Any) -> bool:
    return type(value) in (int, float) and 0 < value < 86_400


def _is_capacity(value: Any) -> bool:
    return type(value) is int and value >= 1


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value)


def _is_short_text(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= 100 and "\0" not in value


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


def _is_number_of_workers(value: Any) -> bool:
    return value == 0 or _is_count(value)


def _is_long(value: Any) -> bool:
    return type(value) in (int, float) and 0 <= value <= 86_400 * 3_650


def _is_token(value: Any) -> bool:
    return value is None or (isinstance(value, str) and len(value) >= 16 and value.isascii() and value.isprintable())


def _is_links(value: Any) -> bool:
    return isinstance(value, dict) and all(_is_text(label) and not obstacle(url) for label, url in value.items())


def _mistaken_rules(value: Any) -> Iterator[Mistake]:
    try:
        retention_rules.read(value)
    except ValueError as error:
        hint = f"The default is {list(retention_rules.DEFAULT)!r}."
        yield Mistake(f"JOBQUEUE['RETENTION'] is invalid: {str(error).rstrip('.')}.", hint)


#: The values of TESTING: jobs are only stored, run when their transaction commits, or run by ``enqueue`` itself.
TESTING = (None, "store", "inline", "immediate")

SETTINGS: dict[str, Setting] = {
    # The entry of DATABASES that holds the queue. Only the application's own database shares transactions with it.
    "DATABASE": Setting("default", _is_text, "the alias of an entry in DATABASES"),
    # The entry of DATABASES that jobs are relayed to and run from. None: they are run from here.
    "RELAY_TO": Setting(None, lambda value: value is None or _is_text(value), "None or an alias in DATABASES"),
    # The dotted path of a backend class. None: the backend for the database's vendor.
    "BACKEND": Setting(None, lambda value: value is None or _is_text(value), "None or a dotted path"),
    # A payload refers to the data it needs. Larger data belongs in a table or a file.
    "MAX_PAYLOAD_BYTES": Setting(262_144, _is_bytes, "a whole number of bytes, at most 64 MiB"),
    # A result is for people and the admin to read.
    "MAX_RESULT_BYTES": Setting(262_144, _is_bytes, "a whole number of bytes, at most 64 MiB"),
    # How long a write waits for SQLite's only write lock before it raises DatabaseBusy.
    "BUSY_TIMEOUT": Setting(30.0, _is_seconds, "seconds, above 0 and below a day"),
    # The time limit of attempts whose type doesn't set one: long enough for most jobs, short enough to notice a hung
    # job.
    "TIMEOUT": Setting(300.0, _is_seconds, "seconds, above 0 and below a day"),
    # How many jobs may wait in a queue without a capacity of its own before `jobqueue status` reports an error. It
    # warns at 80 %. No job is refused.
    "CAPACITY": Setting(10_000, _is_capacity, "a whole number of jobs, at least 1"),
    # Which ended jobs are deleted, and when. Dead letters are kept unless a rule names them.
    "RETENTION": Setting(
        list(retention_rules.DEFAULT),
        lambda value: not any(_mistaken_rules(value)),
        "a list of rules such as {'status': 'completed', 'keep': timedelta(days=7)}",
        _mistaken_rules,
    ),
    # Options of queues, by name or pattern; see policy.queue_options.
    "QUEUES": Setting(
        {},
        lambda value: not any(queue_options.mistakes(value)),
        "a dict of queues and their options",
        queue_options.mistakes,
    ),
    # Whether web processes start a worker. Most deployments run workers as services of their own.
    "EMBEDDED": Setting(False, lambda value: type(value) is bool, "True or False"),
    # The format of a worker's log: sentences for people, or one JSON object a line for machines.
    "LOG_FORMAT": Setting("text", lambda value: value in ("text", "json"), "'text' or 'json'"),
    # The release of the application that a worker runs: kept with each failure, so that the admin tells which release
    # an error came with.
    "RELEASE": Setting("", _is_short_text, "a text of at most 100 characters"),
    # Links on each job's page to other systems, by label: logs, traces, errors.
    "LINKS": Setting(
        {},
        _is_links,
        f"a dict of labels and URLs such as 'https://logs.example.com/?job={{id}}', with fields of {', '.join(FIELDS)}",
    ),
    # A monitor that sends this token reads the views of jobqueue.observe.views. None: only staff reads them.
    "MONITOR_TOKEN": Setting(None, _is_token, "None or a text of at least 16 printable ASCII characters"),
    # A function of the request, for a rule of your own about who reads these views.
    "MONITOR_CHECK": Setting(None, lambda value: value is None or _is_text(value), "None or a dotted path"),
    # How many workers must be alive for the queue to be healthy. 0 where workers are started only at times.
    "MIN_WORKERS": Setting(1, _is_number_of_workers, "a whole number from 0 to 1,000,000"),
    # From this number of dead letters on, the queue is unhealthy: somebody has to look at it.
    "MAX_DEAD_LETTERS": Setting(100, _is_count, "a whole number from 1 to 1,000,000"),
    # Who is told of problems, and from when on: see policy.alerts.settings. Empty: nobody is, and no worker looks.
    "ALERTS": Setting(
        {},
        lambda value: not any(alert_settings.mistakes(value)),
        "a dict of rules and channels",
        alert_settings.mistakes,
    ),
    # The folder of the wake-up sockets for SQLite. None: a private folder in the system's runtime directory.
    "RUNTIME_DIR": Setting(None, _is_folder_there, "None or the absolute path of an existing folder"),
    # What happens to new jobs in tests. None: workers run them, as everywhere else.
    "TESTING": Setting(None, lambda value: value in TESTING, "None, 'store', 'inline' or 'immediate'"),
    # The rest is for the apps of jobqueue.contrib.
    #
    # The folder that file jobs cannot leave. None: every file job is refused.
    "FILES_ROOT": Setting(None, _is_folder, "None or the absolute path of a folder"),
    # The management commands that run_command may run. Empty by default, so that a row in a table can't choose one.
    "COMMANDS": Setting((), _is_names, "a list of names of management commands"),
    # How many bytes from the end of a command's output are kept.
    "COMMAND_OUTPUT_BYTES": Setting(16_384, _is_bytes, "a whole number of bytes, at most 64 MiB"),
    # Whether a command that can be queued is queued if no terminal is attached, as in hooks and cron. If off, it runs
    # at once, so that a script can wait for it.
    "COMMANDS_UNATTENDED": Setting(True, lambda value: isinstance(value, bool), "True or False"),
    # Private networks that webhooks may reach, also without TLS.
    "WEBHOOK_NETWORKS": Setting((), _is_networks, "a list of networks such as '10.0.0.0/8'"),
    # The time limit of a delivery, from the connection to the last byte of the answer.
    "WEBHOOK_TIMEOUT": Setting(10.0, _is_seconds, "seconds, above 0 and below a day"),
    # How much of an answer is read and kept: enough for an error message, and a bound on endless answers.
    "WEBHOOK_ANSWER_BYTES": Setting(1_024, _is_bytes, "a whole number of bytes, at most 64 MiB"),
    # An endpoint is disabled after this many failures in a row, if they span at least this time. A short outage
    # disables
    # no endpoint, however busy it is.
    "WEBHOOK_MAX_FAILURES": Setting(20, _is_count, "a whole number from 1 to 1,000,000"),
    "WEBHOOK_FAILING_FOR": Setting(3_600.0, _is_long, "seconds, at most ten years"),
    # How long the previous secret is used beside the current one, so that receivers can change over.
    "WEBHOOK_ROTATION": Setting(86_400.0, _is_long, "seconds, at most ten years"),
    # How long the log of deliveries is kept.
    "WEBHOOK_LOG_FOR": Setting(2_592_000.0, _is_long, "seconds, at most ten years"),
    # The backend that sends queued e-mails: a dotted path, or an alias if MAILERS is set.
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
    """Return a setting's value. Raise ImproperlyConfigured if it is invalid."""
    setting = SETTINGS[key]
    value = given().get(key, setting.default)
    for mistake in _mistakes_in(key, value):
        raise ImproperlyConfigured(mistake.sentence)
    return value


def _mistakes_in(key: str, value: Any) -> list[Mistake]:
    """Return what is wrong with a value: one mistake, or several parts of it."""
    setting = SETTINGS[key]
    if setting.accepts(value):
        return []
    if setting.mistakes is not None:
        return [*setting.mistakes(value)]
    sentence = f"JOBQUEUE[{key!r}] must be {setting.wants}, not {value!r}."
    return [Mistake(sentence, f"The default is {setting.default!r}.")]


def unknown_keys() -> list[Any]:
    """Return the keys of ``settings.JOBQUEUE`` that are not settings of this package."""
    return [key for key in given() if key not in SETTINGS]


def refuse_unknown_keys() -> None:
    """Raise ImproperlyConfigured for a misspelt key, whose default would otherwise apply unnoticed."""
    for key in unknown_keys():
        raise ImproperlyConfigured(f"JOBQUEUE has the unknown key {key!r}. {did_you_mean(key, SETTINGS)}")


def mistakes() -> Iterator[Mistake]:
    """Yield what is wrong with the values of known keys."""
    for key, value in given().items():
        if key in SETTINGS:
            yield from _mistakes_in(key, value)


def is_sound() -> bool:
    """Return whether all keys are known and all values valid."""
    try:
        return not unknown_keys() and not [*mistakes()]
    except ImproperlyConfigured:
        return False


def _forget(*, setting: str, **_: object) -> None:
    if setting == "JOBQUEUE":
        get.cache_clear()


setting_changed.connect(_forget)
