"""Diagnoses of SQLite: its pragmas, its file, and the disk that the file is on."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

from jobqueue.observe.doctor.diagnosis import Diagnosis, megabytes
from jobqueue.observe.doctor.examination import Examination
from jobqueue.observe.health import Level

#: A shorter wait fails while another process only commits.
SHORTEST_WAIT = timedelta(seconds=1)
#: So many unused bytes are worth a VACUUM if they are half of the file.
MUCH_UNUSED = 100 * 2**20
#: File systems on which another machine may write, and whose locks SQLite can't rely on.
NETWORKS = ("nfs", "nfs4", "cifs", "smb3", "9p", "fuse.sshfs", "glusterfs", "ceph", "virtiofs", "vboxsf")
_OFF, _FULL = 0, 2
_SETTINGS = "docs/reference/settings-and-checks.md#the-databases-own-settings"


def no_write_ahead_log(seen: Examination) -> Iterator[Diagnosis]:
    """Diagnose a journal with which readers and writers block each other."""
    setup = seen.setup.sqlite
    if setup and setup.file and setup.journal_mode != "wal":
        yield Diagnosis(
            Level.WARNING,
            "no_write_ahead_log",
            f"The journal mode of SQLite is {setup.journal_mode!r}: readers and the worker block each other.",
            "Set OPTIONS['init_command'] = 'PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;'.",
            "docs/reference/settings-and-checks.md#jobqueuew002",
        )


def not_durable(seen: Examination) -> Iterator[Diagnosis]:
    """Diagnose commits that don't reach the disk, or that wait for it more often than they must."""
    setup = seen.setup.sqlite
    if setup and setup.file and setup.synchronous == _OFF:
        yield Diagnosis(
            Level.WARNING,
            "synchronous_off",
            "SQLite doesn't wait for the disk (synchronous=OFF): a power failure can corrupt the database.",
            "Set PRAGMA synchronous=NORMAL in OPTIONS['init_command'].",
            _SETTINGS,
        )
    if setup and setup.journal_mode == "wal" and setup.synchronous >= _FULL:
        yield Diagnosis(
            Level.NOTICE,
            "synchronous_full",
            "Each commit waits for the disk (synchronous=FULL), which makes the queue several times slower.",
            "Set PRAGMA synchronous=NORMAL in OPTIONS['init_command'], unless the last commits must survive a power "
            "failure.",
            _SETTINGS,
        )


def short_wait(seen: Examination) -> Iterator[Diagnosis]:
    """Diagnose a wait for the write lock that is too short for the application's own writes."""
    setup = seen.setup.sqlite
    if setup and setup.file and setup.busy_timeout < SHORTEST_WAIT:
        yield Diagnosis(
            Level.WARNING,
            "busy_timeout_short",
            f"The application waits {setup.busy_timeout.total_seconds():g} s for the write lock: its own writes fail "
            "with 'database is locked' while a worker commits.",
            "Set OPTIONS['timeout'] to 5 seconds or more.",
            _SETTINGS,
        )


def never_checkpointed(seen: Examination) -> Iterator[Diagnosis]:
    """Diagnose a log that is never written back by itself."""
    setup = seen.setup.sqlite
    if setup and setup.journal_mode == "wal" and setup.checkpoint_pages == 0:
        yield Diagnosis(
            Level.WARNING,
            "never_checkpointed",
            "Automatic checkpoints are off (wal_autocheckpoint=0): the log grows without a limit.",
            "Leave PRAGMA wal_autocheckpoint at its default of 1000.",
            "docs/explanation/old-snapshots.md#sqlite",
        )


def file_not_writable(seen: Examination) -> Iterator[Diagnosis]:
    """Diagnose a file, or a folder for the log beside it, that this user can't write."""
    setup = seen.setup.sqlite
    file = Path(setup.file) if setup and setup.file else None
    for path in (file, file.parent) if file else ():
        if not os.access(path, os.W_OK):
            yield Diagnosis(
                Level.ERROR,
                "file_not_writable",
                f"This user can't write {path}. SQLite also writes a log beside its file.",
                "Give the user of the workers and of the web processes write access to the file and its folder.",
                _SETTINGS,
            )


def file_on_network(seen: Examination) -> Iterator[Diagnosis]:
    """Diagnose a database on a file system whose locks and shared memory SQLite can't rely on."""
    setup = seen.setup.sqlite
    folder = str(Path(setup.file).parent) if setup and setup.file else ""
    for disk in seen.disks:
        if disk.path == folder and disk.kind in NETWORKS:
            yield Diagnosis(
                Level.ERROR,
                "file_on_network",
                f"The database is on a file system of the kind {disk.kind}, on which SQLite can corrupt it.",
                "Keep the file on a disk of this machine, or move to Postgres.",
                "docs/explanation/sizing.md#when-sqlite-stops-being-enough",
            )


def file_half_empty(seen: Examination) -> Iterator[Diagnosis]:
    """Diagnose a file that is mostly unused."""
    setup = seen.setup.sqlite
    if setup and setup.unused >= MUCH_UNUSED and setup.unused * 2 > setup.size:
        yield Diagnosis(
            Level.NOTICE,
            "file_half_empty",
            f"{megabytes(setup.unused)} of the {megabytes(setup.size)} of the database's file are unused.",
            "New jobs use that space. To give it back to the file system, run VACUUM while no worker runs.",
            "docs/how-to/retention.md#the-size-of-the-files",
        )


DIAGNOSES = (
    no_write_ahead_log,
    not_durable,
    short_wait,
    never_checkpointed,
    file_not_writable,
    file_on_network,
    file_half_empty,
)
