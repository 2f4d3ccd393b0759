"""The checks of the settings: the ``JOBQUEUE`` dict, the databases it names, and the commands."""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

from django.conf import ENVIRONMENT_VARIABLE, settings
from django.core.checks import CheckMessage, Error, register
from django.core.checks import Warning as Caution
from django.core.exceptions import ImproperlyConfigured
from django.core.management import get_commands
from django.db import connections

from jobqueue import conf
from jobqueue.backends import BY_VENDOR, class_of
from jobqueue.checks.sqlite import check_file
from jobqueue.policy.nearest import did_you_mean

#: The middleware that starts the embedded worker.
EMBEDDING = "jobqueue.middleware.embedded_worker"


def check_settings(**_: Any) -> list[CheckMessage]:
    """Check the ``JOBQUEUE`` dict and the database it names."""
    try:
        found = [*_unknown_keys(), *_bad_values()]
    except ImproperlyConfigured as error:
        return [Error(str(error), hint="Write JOBQUEUE = {...}.", id="jobqueue.E001")]
    return found or [*_database()]


def _unknown_keys() -> Iterator[CheckMessage]:
    for key in conf.unknown_keys():
        hint = did_you_mean(key, conf.SETTINGS)
        yield Error(f"JOBQUEUE has the unknown key {key!r}.", hint=hint, id="jobqueue.E002")


def _bad_values() -> Iterator[CheckMessage]:
    for sentence, hint in conf.mistakes():
        yield Error(sentence, hint=hint, id="jobqueue.E003")


def _database() -> Iterator[CheckMessage]:
    alias = conf.get("DATABASE")
    if alias not in connections.settings:
        hint = did_you_mean(alias, connections.settings, "Add it to DATABASES.")
        yield Error(f"JOBQUEUE['DATABASE'] names {alias!r}, which is not in DATABASES.", hint=hint, id="jobqueue.E004")
        return
    vendor = connections[alias].vendor
    if vendor not in BY_VENDOR and conf.get("BACKEND") is None:
        yield Error(
            f"The job queue does not run on {vendor}, the database of {alias!r}.",
            hint=f"Point JOBQUEUE['DATABASE'] to a database that is one of: {', '.join(BY_VENDOR)}.",
            id="jobqueue.E005",
        )
    if vendor == "sqlite":
        yield from check_file(alias)
    if vendor == "postgresql" and find_spec("psycopg") is None:
        yield Error(
            "The job queue needs psycopg 3 to talk to Postgres.",
            hint="pip install 'django-jobqueue[postgres]'",
            id="jobqueue.E006",
        )
    yield from _backend()
    yield from _own_database(alias)
    yield from _relay(alias)
    if conf.get("EMBEDDED"):
        yield from _embedded(alias)


def _backend() -> Iterator[CheckMessage]:
    path = conf.get("BACKEND")
    try:
        if path is not None:
            class_of(path)
    except ImproperlyConfigured as error:
        yield Error(
            str(error), hint="Leave out BACKEND to use the backend for the database's vendor.", id="jobqueue.E014"
        )


def _own_database(alias: str) -> Iterator[CheckMessage]:
    routers = [router if isinstance(router, str) else type(router).__name__ for router in settings.DATABASE_ROUTERS]
    if alias != "default" and not any(path.endswith("JobQueueRouter") for path in routers):
        yield Caution(
            f"The queue is in {alias!r}, but no router sends its tables there: 'default' would get them too.",
            hint="Add 'jobqueue.routers.JobQueueRouter' to DATABASE_ROUTERS.",
            id="jobqueue.W004",
        )
    if alias != "default":
        yield Caution(
            f"The queue is in {alias!r}: jobs are not part of a transaction of 'default' and stay if it rolls back.",
            hint="Use jobqueue.enqueue_on_commit() in such transactions, and silence jobqueue.W005.",
            id="jobqueue.W005",
        )


def _relay(alias: str) -> Iterator[CheckMessage]:
    """Check the database that jobs are relayed to, if any."""
    target = conf.get("RELAY_TO")
    if target is None:
        return
    if target not in connections.settings:
        what, hint = "which is not in DATABASES", "Add it to DATABASES, or correct the name."
    elif target == alias:
        what, hint = "the database that the jobs are already in", "Leave it out to run them from there."
    elif connections[target].vendor not in BY_VENDOR:
        what, hint = f"which is {connections[target].vendor}", f"Relay to one of: {', '.join(BY_VENDOR)}."
    elif conf.get("BACKEND") is not None:
        what, hint = "but jobs of a custom BACKEND cannot be relayed", "Leave out one of the two."
    else:
        return
    yield Error(f"JOBQUEUE['RELAY_TO'] names {target!r}, {what}.", hint=hint, id="jobqueue.E011")


def _embedded(alias: str) -> Iterator[CheckMessage]:
    """Check that a web process can start a worker, and that the middleware that does so is installed."""
    why = ""
    if connections[alias].vendor == "sqlite" and connections[alias].is_in_memory_db():  # type: ignore[attr-defined]
        why = f"{alias!r} is in the memory of this process, and the worker is another process"
    elif str(conf.get("BACKEND")).endswith(".MemoryBackend"):
        why = "the jobs are in the memory of this process, and the worker is another process"
    elif ENVIRONMENT_VARIABLE not in os.environ:
        why = "the settings are not in a module that the worker could import"
    if why:
        yield Error(
            f"JOBQUEUE['EMBEDDED'] is on, but a web process cannot start a worker: {why}.",
            hint="Leave it out, and run jobs with manage.py runworker, or with jobqueue.testing in tests.",
            id="jobqueue.E012",
        )
    if EMBEDDING not in settings.MIDDLEWARE:
        yield Error(
            "JOBQUEUE['EMBEDDED'] is on, but nothing starts the worker.",
            hint=f"Add {EMBEDDING!r} to MIDDLEWARE. Its position does not matter.",
            id="jobqueue.E013",
        )


@register(conf.CHECKS)
def check_commands(**_: Any) -> list[CheckMessage]:
    """Check that ``runworker`` is this package's command."""
    owner = get_commands().get("runworker", "jobqueue")
    if owner == "jobqueue":
        return []
    return [
        Caution(
            f"'manage.py runworker' is a command of {owner!r}, which comes before 'jobqueue' in INSTALLED_APPS: "
            "it does not run jobs.",
            hint="Start workers with 'manage.py jobqueue worker', which is the same, and silence jobqueue.W006.",
            id="jobqueue.W006",
        )
    ]


@register(conf.CHECKS, deploy=True)
def check_testing(**_: Any) -> list[CheckMessage]:
    """Check that no deployment has the settings of tests."""
    mode = conf.get("TESTING") if conf.is_sound() else None
    if mode is None:
        return []
    return [
        Caution(
            f"JOBQUEUE['TESTING'] is {mode!r}: jobs run in the process that enqueues them, or not at all.",
            hint="Set it in the settings of tests only.",
            id="jobqueue.W020",
        )
    ]
