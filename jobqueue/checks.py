"""System checks: what is wrong with the settings, and what is risky about database and handlers, each with a hint."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from datetime import timedelta
from importlib.util import find_spec
from math import floor
from typing import Any, get_args

from django.conf import ENVIRONMENT_VARIABLE, settings
from django.core.checks import CheckMessage, Error, Tags, register
from django.core.checks import Warning as Caution
from django.core.exceptions import ImproperlyConfigured
from django.core.management import get_commands
from django.db import connections
from pydantic import BaseModel

from jobqueue import conf
from jobqueue.atomic_checks import divided
from jobqueue.backends import BY_VENDOR, class_of
from jobqueue.backends.sqlite_checks import check_file
from jobqueue.handlers.registry import JobType, registry
from jobqueue.policy.leases import LONGEST_LEASE
from jobqueue.policy.nearest import did_you_mean
from jobqueue.policy.redaction import is_secret_name
from jobqueue.worker.options import WorkerOptions

#: Of all checks here and in the apps of jobqueue.contrib: ``manage.py check --tag jobqueue``.
TAG = conf.CHECKS
#: What a supervisor opens for itself: one connection to work with, one to listen on.
_OF_SUPERVISOR = 2
_FOR_ORDINARY_USERS = """
    SELECT current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
           - coalesce(current_setting('reserved_connections', true)::int, 0)
"""
#: What starts the embedded worker.
EMBEDDING = "jobqueue.middleware.embedded_worker"
_DEFAULTS = WorkerOptions()
_MOST = 1_000_000
_FLAG = {bool, type(None)}
_NUMBER = {int, float, *_FLAG}


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
    for key, value in conf.mistakes():
        hint = f"The default is {conf.SETTINGS[key].default!r}."
        yield Error(conf.complaint(key, value), hint=hint, id="jobqueue.E003")


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
        yield Error(str(error), hint="Leave BACKEND out for the one of the database's vendor.", id="jobqueue.E014")


def _own_database(alias: str) -> Iterator[CheckMessage]:
    routers = [router if isinstance(router, str) else type(router).__name__ for router in settings.DATABASE_ROUTERS]
    if alias != "default" and not any(path.endswith("JobQueueRouter") for path in routers):
        yield Caution(
            f"The queue is in {alias!r}, but nothing sends its tables there: they would be made in 'default' too.",
            hint="Add 'jobqueue.routers.JobQueueRouter' to DATABASE_ROUTERS.",
            id="jobqueue.W004",
        )
    if alias != "default":
        yield Caution(
            f"The queue is in {alias!r}: a job is no part of a transaction of 'default', and stays if that rolls back.",
            hint="Use jobqueue.enqueue_on_commit() in such transactions, and silence jobqueue.W005.",
            id="jobqueue.W005",
        )


def _relay(alias: str) -> Iterator[CheckMessage]:
    """Check where jobs are relayed to, if they are."""
    target = conf.get("RELAY_TO")
    if target is None:
        return
    if target not in connections.settings:
        what, hint = "which is not in DATABASES", "Add it to DATABASES, or correct the name."
    elif target == alias:
        what, hint = "where the jobs are already", "Leave it out: then they are run from there."
    elif connections[target].vendor not in BY_VENDOR:
        what, hint = f"which is {connections[target].vendor}", f"Relay to one of: {', '.join(BY_VENDOR)}."
    elif conf.get("BACKEND") is not None:
        what, hint = "and jobs of a BACKEND of your own cannot be relayed", "Leave one of the two out."
    else:
        return
    yield Error(f"JOBQUEUE['RELAY_TO'] names {target!r}, {what}.", hint=hint, id="jobqueue.E011")


def _embedded(alias: str) -> Iterator[CheckMessage]:
    """Check that a web process can start a worker, and that something has it do so."""
    why = ""
    if connections[alias].vendor == "sqlite" and connections[alias].is_in_memory_db():  # type: ignore[attr-defined]
        why = f"{alias!r} is in the memory of this process, and the worker is another one"
    elif str(conf.get("BACKEND")).endswith(".MemoryBackend"):
        why = "the jobs are in the memory of this process, and the worker is another one"
    elif ENVIRONMENT_VARIABLE not in os.environ:
        why = "the settings are in no module that a worker could read"
    if why:
        yield Error(
            f"JOBQUEUE['EMBEDDED'] is on, and no worker can be started by a web process: {why}.",
            hint="Leave it out, and run jobs with manage.py runworker, or in tests with jobqueue.testing.",
            id="jobqueue.E012",
        )
    if EMBEDDING not in settings.MIDDLEWARE:
        yield Error(
            "JOBQUEUE['EMBEDDED'] is on, and nothing starts the worker.",
            hint=f"Add {EMBEDDING!r} to MIDDLEWARE, anywhere.",
            id="jobqueue.E013",
        )


@register(TAG)
def check_commands(**_: Any) -> list[CheckMessage]:
    """Check that ``runworker`` is ours."""
    owner = get_commands().get("runworker", "jobqueue")
    if owner == "jobqueue":
        return []
    return [
        Caution(
            f"'manage.py runworker' is a command of {owner!r}, which stands before 'jobqueue' in INSTALLED_APPS: "
            "it does not run jobs.",
            hint="Start workers with 'manage.py jobqueue worker', which is the same, and silence jobqueue.W006.",
            id="jobqueue.W006",
        )
    ]


@register(TAG)
def check_handlers(**_: Any) -> list[CheckMessage]:
    """Check what the handlers declare."""
    is_sqlite = _queue_vendor() == "sqlite"
    kinds = sorted(registry, key=lambda kind: kind.name)
    slow = [message for kind in kinds if is_sqlite and kind.atomic for message in _long_transaction(kind)]
    apart = divided(kinds, conf.get("DATABASE")) if _queue_vendor() else ()
    each = (message for kind in kinds for message in (*_secrets(kind), *_forgotten_version(kind)))
    return [*slow, *apart, *each]


def _queue_vendor() -> str:
    """Name the vendor of the queue's database; of settings that ``check_settings`` complains of, nothing."""
    alias = conf.get("DATABASE") if conf.is_sound() else ""
    return connections[alias].vendor if alias in connections.settings else ""


def _long_transaction(kind: JobType) -> Iterator[CheckMessage]:
    lease = kind.lease or timedelta(seconds=_told("LEASE", _DEFAULTS.lease))
    if kind.timeout <= lease / 3:
        return
    longer = f", or lease={3 * kind.timeout.total_seconds():g} or more" if kind.timeout <= LONGEST_LEASE / 3 else ""
    yield Caution(
        f"The atomic job type {kind.name!r} may work for {kind.timeout.total_seconds():g} s, more than a third of its "
        f"lease of {lease.total_seconds():g} s: all that time it holds SQLite's only write lock, and its worker cannot "
        "renew a lease.",
        hint=f"Give @job timeout={floor(lease.total_seconds() * 10 / 3) / 10:g} or less{longer}.",
        id="jobqueue.W007",
    )


def _told(option: str, default: float) -> float:
    """Read what the environment tells a worker; of a value that will not do, the worker itself complains."""
    try:
        told = float(os.environ.get(f"JOBQUEUE_WORKER_{option}") or default)
    except ValueError:
        return default
    return told if 0 < told < _MOST else default


@register(TAG, Tags.database)
def check_connections(*, databases: Sequence[str] | None = None, **_: Any) -> list[CheckMessage]:
    """Check that the database server has a connection for each slot. It asks the server, so it has to be asked for."""
    given = databases or ()
    return [message for alias in given if connections[alias].vendor == "postgresql" for message in _too_many(alias)]


def _too_many(alias: str) -> Iterator[CheckMessage]:
    processes = max(1, int(_told("PROCESSES", _DEFAULTS.processes)))
    slots = processes * int(_told("CONCURRENCY", _DEFAULTS.concurrency))
    with connections[alias].cursor() as cursor:
        cursor.execute(_FOR_ORDINARY_USERS)
        (most,) = cursor.fetchone()
    if slots + _OF_SUPERVISOR > most:
        yield Caution(
            f"A worker with {slots} slots may open {slots + _OF_SUPERVISOR} connections to {alias!r}, and its server "
            f"has {most} for all its users.",
            hint="Lower JOBQUEUE_WORKER_CONCURRENCY or JOBQUEUE_WORKER_PROCESSES, raise the server's max_connections, "
            "or put a pooler between them.",
            id="jobqueue.W008",
        )


def _forgotten_version(kind: JobType) -> Iterator[CheckMessage]:
    """Warn of a version that no upgrader leads on from; those before the first upgrader have been given up."""
    version, steps = kind.payload.version, kind.payload.upgraders
    missing = [step for step in range(min(steps, default=version - 1), version) if step not in steps]
    if version > 1 and missing:
        yield Caution(
            f"The job type {kind.name!r} has payload version {version}, and no upgrader leads on from version "
            f"{missing[0]}: its stored jobs of that version become dead letters.",
            hint=f"Give @job upgraders={{{missing[0]}: ...}}; silence jobqueue.W011 if there are no such jobs.",
            id="jobqueue.W011",
        )


def _secrets(kind: JobType) -> Iterator[CheckMessage]:
    found = sorted(set(_secret_fields(kind.signature.form)))
    if found:
        yield Caution(
            f"The payload of the job type {kind.name!r} has what looks like a secret: {', '.join(found)}. Payloads are "
            "kept as plain text in the database.",
            hint="Store a reference such as private_key_ref, and fetch the secret when the job runs; silence "
            "jobqueue.W009 if it is none.",
            id="jobqueue.W009",
        )


def _secret_fields(form: Any, path: str = "", above: tuple[Any, ...] = ()) -> Iterator[str]:
    """Name the fields of a model, and of the models within it, that look like secrets."""
    if not (isinstance(form, type) and issubclass(form, BaseModel)) or form in above:
        return
    for name, field in form.model_fields.items():
        parts = list(_parts(field.annotation))
        if any(map(is_secret_name, filter(None, (name, field.alias)))) and not _is_harmless(name, parts):
            yield path + name
        for part in parts:
            yield from _secret_fields(part, f"{path}{name}.", (*above, form))


def _parts(annotation: Any) -> Iterator[Any]:
    """Take an annotation apart: ``list[Account | None]`` is an Account or nothing."""
    inner = get_args(annotation)
    if not inner:
        yield annotation
    for one in inner:
        yield from _parts(one)


def _is_harmless(name: str, parts: Sequence[Any]) -> bool:
    """Whether a field can only say yes or no, or how many tokens."""
    harmless = _NUMBER if name.lower().endswith("tokens") else _FLAG
    return all(isinstance(part, type) and part in harmless for part in parts)
