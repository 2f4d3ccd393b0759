"""The places of trials: databases on the machine's server, or on one that may be stopped."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.apps import apps
from django.core.management import call_command
from django.db import connection

from benchmarks.databases import Place, postgres_place, sqlite_place
from benchmarks.faults.checker import Row
from benchmarks.faults.cluster import Cluster, own_cluster
from jobqueue import backends

APPS = ("django.contrib.contenttypes", "django.contrib.auth")


@dataclass(frozen=True, slots=True)
class Ground:
    """A place, and its cluster if that is the laboratory's own."""

    place: Place
    cluster: Cluster | None = None


@contextmanager
def ground(database: str, *, in_own_cluster: bool) -> Iterator[Ground]:
    """Create the database of a trial, and remove it."""
    if database == "sqlite":
        with sqlite_place() as place:
            yield Ground(place)
    elif in_own_cluster:
        with own_cluster() as cluster:
            yield Ground(cluster.place(), cluster)
    else:
        with postgres_place() as place:
            yield Ground(place)


def prepare(place: Place) -> None:
    """Set up the project in this process, and create the tables."""
    place.configure(APPS)
    call_command("migrate", verbosity=0, stdout=io.StringIO())
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE laboratory_effect (job_id varchar(64) NOT NULL)")


def rows() -> Iterable[Row]:
    """Return the database's row of every job."""
    failed: dict[str, set[int]] = {}
    for job, fence in apps.get_model("jobqueue", "Attempt")._default_manager.values_list("job_id", "fence"):
        failed.setdefault(job, set()).add(fence)
    read = ("id", "status", "fence", "attempts", "lease_owner", "result")
    for job, status, fence, attempts, owner, result in _jobs().values_list(*read).iterator():
        told_by = result.get("fence") if isinstance(result, dict) else None
        yield Row(job, status, fence, attempts, owner, told_by, frozenset(failed.get(job, ())))


def reported() -> set[str]:
    """Return the jobs with a progress report."""
    return set(_jobs().filter(progress__isnull=False).values_list("id", flat=True))


def complaints() -> list[str]:
    """Return the result of SQLite's integrity check."""
    if connection.vendor != "sqlite":
        return []
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA integrity_check")
        return [line for (line,) in cursor.fetchall() if line != "ok"]


def left() -> int:
    """Return the number of jobs that haven't ended."""
    return int(_jobs().filter(status__in=("queued", "in_progress")).count())


def end_leases() -> None:
    """Expire all leases, as if a long time had passed."""
    backend = backends.current()
    _jobs().filter(status="in_progress").update(lease_until=backend.now() - timedelta(minutes=1))


def effects() -> dict[str, int]:
    """Return the number of rows that each atomic handler wrote."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT job_id, count(*) FROM laboratory_effect GROUP BY job_id")
        return dict(cursor.fetchall())


def _jobs() -> Any:
    return apps.get_model("jobqueue", "Job")._default_manager
