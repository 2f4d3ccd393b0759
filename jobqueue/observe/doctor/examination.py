"""The examination: everything that diagnoses use, read in bounded time."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from django.core import checks
from django.db import DatabaseError, connections
from django.db.migrations.loader import MigrationLoader

from jobqueue import conf, runtime
from jobqueue.backends.base import Backend
from jobqueue.errors import JobQueueError
from jobqueue.observe.health import Reading, look
from jobqueue.records.relay import Waiting
from jobqueue.records.setup import Setup

logger = logging.getLogger("jobqueue")

_MOUNTS = Path("/proc/mounts")


@dataclass(frozen=True, slots=True)
class Disk:
    """The free and the whole space, in bytes, of the disk that a folder is on, and the kind of its file system."""

    path: str
    free: int
    size: int
    kind: str = ""


@dataclass(frozen=True, kw_only=True)
class Examination:
    """What was read. ``away`` is the error of a database that doesn't answer; then only the checks were read.

    ``is_woken`` says whether a wake-up arrives that this process sends to itself. It is ``None`` if it wasn't tried.
    """

    checks: list[checks.CheckMessage] = field(default_factory=list)
    away: str = ""
    setup: Setup = field(default_factory=Setup)
    pending: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    health: Reading | None = None
    disks: list[Disk] = field(default_factory=list)
    is_woken: bool | None = None


def examine(backend: Backend, alias: str, outbox: Waiting | None = None) -> Examination:
    """Read everything. A database that doesn't answer is a result, not an error."""
    try:
        backend.now()
        backend.workers.all()
    except DatabaseError as error:
        # Some checks ask the database too.
        return Examination(checks=_checked([]), away=(str(error).strip().splitlines() or [type(error).__name__])[0])
    except JobQueueError:
        pending, unknown = _migrations(alias)
        return Examination(checks=_checked([alias]), pending=pending, unknown=unknown)
    setup = backend.setup.read()
    pending, unknown = _migrations(alias)
    return Examination(
        checks=_checked([alias]),
        setup=setup,
        pending=pending,
        unknown=unknown,
        health=None if pending else look(backend, outbox),
        disks=list(_disks(setup)),
        is_woken=_is_woken(backend),
    )


def _checked(databases: list[str]) -> list[checks.CheckMessage]:
    """Run the system checks of the queue, with those for a deployment."""
    tags = [conf.CHECKS] if conf.CHECKS in checks.registry.registry.tags_available() else []
    return list(checks.run_checks(tags=tags, include_deployment_checks=True, databases=databases))


def _migrations(alias: str) -> tuple[list[str], list[str]]:
    """Return the migrations of the queue that aren't applied, and the applied ones that this code doesn't have."""
    loader = MigrationLoader(connections[alias])
    here = {key for key in loader.graph.nodes if key[0].startswith("jobqueue")}
    applied = {key for key in loader.applied_migrations or () if key[0].startswith("jobqueue")}
    known = here | loader.disk_migrations.keys()
    return sorted(".".join(key) for key in here - applied), sorted(".".join(key) for key in applied - known)


def _disks(setup: Setup) -> Iterator[Disk]:
    folders = [runtime.path()] + ([str(Path(setup.sqlite.file).parent)] if setup.sqlite and setup.sqlite.file else [])
    for folder in folders:
        there = next((one for one in (Path(folder), *Path(folder).parents) if one.exists()), None)
        if there is not None:
            usage = shutil.disk_usage(there)
            yield Disk(str(there), usage.free, usage.total, kind_of(there))


def kind_of(path: Path) -> str:
    """Return the kind of the file system that a path is on, or an empty string where the system doesn't tell."""
    try:
        mounts = [line.split() for line in _MOUNTS.read_text(errors="replace").splitlines()]
    except OSError:
        return ""
    resolved = path.resolve()
    on = [one for one in mounts if len(one) > 2 and resolved.is_relative_to(one[1].replace("\\040", " "))]
    return max(on, key=lambda one: len(one[1]))[2] if on else ""


def _is_woken(backend: Backend) -> bool | None:
    """Try as a worker does at its start whether wake-ups arrive."""
    try:
        listener = backend.listen()
    except (DatabaseError, OSError):
        return False
    level = logger.level
    logger.setLevel(logging.ERROR)  # the listener logs what is a diagnosis here
    try:
        return listener.self_test()
    except (DatabaseError, OSError):
        return False
    finally:
        logger.setLevel(level)
        listener.close()
