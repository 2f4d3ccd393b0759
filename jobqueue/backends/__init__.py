"""The backends, where jobs are kept. The vendor of the database decides which one is used."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from django.core.exceptions import ImproperlyConfigured
from django.core.signals import setting_changed
from django.db import connections
from django.utils.module_loading import import_string

from jobqueue import conf
from jobqueue.backends.base import Backend
from jobqueue.policy.nearest import did_you_mean
from jobqueue.records import JobRecord

BY_VENDOR = {
    "sqlite": "jobqueue.backends.sqlite.SqliteBackend",
    "postgresql": "jobqueue.backends.postgresql.PostgresBackend",
}
_KNOWN = (*BY_VENDOR.values(), "jobqueue.backends.memory.MemoryBackend")


def current() -> Backend:
    """Return the backend that the settings ask for, which the whole process shares."""
    return _made(conf.get("DATABASE"), conf.get("BACKEND"))


def reset() -> None:
    """Make backends anew when they are next used: for tests, in which a queue in memory is then empty."""
    _made.cache_clear()


def shared() -> Backend | None:
    """Return the backend that jobs are relayed to, or ``None`` if ``RELAY_TO`` isn't set."""
    alias = conf.get("RELAY_TO")
    return None if alias is None else _made(alias, None)


def look_up(job_id: str) -> JobRecord | None:
    """Read a job with its history. A job that isn't in this database may be in the one that jobs are relayed to."""
    found, further = current().jobs.get(job_id), shared()
    return further.jobs.get(job_id) if found is None and further is not None else found


def class_of(path: str) -> type[Backend]:
    """Import the class that ``BACKEND`` names. Raise ImproperlyConfigured, in one sentence, if it is no backend."""
    named = f"JOBQUEUE['BACKEND'] is {path!r}, which"
    try:
        found = import_string(path)
    except ImportError as error:
        raise ImproperlyConfigured(f"{named} cannot be imported: {error}. {did_you_mean(path, _KNOWN)}") from error
    if not (isinstance(found, type) and issubclass(found, Backend)):
        raise ImproperlyConfigured(f"{named} is no subclass of jobqueue.backends.base.Backend.")
    if missing := sorted(getattr(found, "__abstractmethods__", ())):
        raise ImproperlyConfigured(f"{named} does not define {', '.join(missing)}.")
    return found


@cache
def _made(alias: str, path: str | None) -> Backend:
    conf.refuse_unknown_keys()
    if alias not in connections.settings:
        raise ImproperlyConfigured(
            f"JOBQUEUE names the database {alias!r}, which is not in DATABASES. "
            f"{did_you_mean(alias, connections.settings)}"
        )
    if path is None:
        vendor = connections[alias].vendor
        if vendor not in BY_VENDOR:
            raise ImproperlyConfigured(
                f'The database "{alias}" is {vendor}; the job queue runs on {" and on ".join(BY_VENDOR)}. '
                f"Point JOBQUEUE['DATABASE'] and JOBQUEUE['RELAY_TO'] to databases that are."
            )
        path = BY_VENDOR[vendor]
    made: Callable[[str], Backend] = class_of(path)
    return made(alias)


def _forget(*, setting: str, **_: object) -> None:
    if setting in ("JOBQUEUE", "DATABASES"):
        _made.cache_clear()


setting_changed.connect(_forget)
