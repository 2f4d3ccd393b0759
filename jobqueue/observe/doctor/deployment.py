"""Diagnoses of the deployment: the database's answer, migrations, indexes, releases of workers, and disks."""

from __future__ import annotations

from collections.abc import Iterator

from django.core.checks import ERROR, INFO

from jobqueue.observe.doctor.diagnosis import Diagnosis, megabytes
from jobqueue.observe.doctor.examination import Examination
from jobqueue.observe.health import Level
from jobqueue.version import __version__

#: The free space below which a disk is full, or nearly so.
FULL_AT, LOW_AT, LOW_SHARE = 100 * 2**20, 5 * 2**30, 0.05
_SHOWN = 5
#: Judged by the journal that is in use, rather than by the settings.
_JUDGED_APART = ("jobqueue.W002",)
_RELEASE = "docs/how-to/deployment.md#a-release"


def database_away(seen: Examination) -> Iterator[Diagnosis]:
    """Diagnose a database that doesn't answer."""
    if seen.away:
        yield Diagnosis(
            Level.ERROR,
            "database_away",
            f"The database doesn't answer: {seen.away}",
            "Check DATABASES, the server, and the network in between.",
            "docs/how-to/postgres.md#a-server-that-vanishes",
        )


def failed_checks(seen: Examination) -> Iterator[Diagnosis]:
    """Pass on what the system checks of the queue find, with those for a deployment."""
    for one in seen.checks:
        if one.is_silenced() or one.id in _JUDGED_APART:
            continue
        level = Level.ERROR if one.level >= ERROR else Level.NOTICE if one.level <= INFO else Level.WARNING
        anchor = (one.id or "").lower().replace(".", "")
        page = f"docs/reference/settings-and-checks.md#{anchor}"
        yield Diagnosis(level, one.id or "check", str(one.msg), str(one.hint or ""), page)


def pending_migrations(seen: Examination) -> Iterator[Diagnosis]:
    """Diagnose a schema that is older or newer than the code."""
    if seen.pending:
        yield Diagnosis(
            Level.ERROR,
            "pending_migrations",
            f"{_names(seen.pending)} {_are(seen.pending)} not applied.",
            "Run manage.py migrate before you start workers of this release.",
            _RELEASE,
        )
    if seen.unknown:
        yield Diagnosis(
            Level.WARNING,
            "newer_schema",
            f"{_names(seen.unknown)} {_are(seen.unknown)} applied, but this release doesn't have "
            f"{'them' if len(seen.unknown) > 1 else 'it'}: a newer one was here.",
            "Deploy the newer release again, or undo its migrations before you go back.",
            _RELEASE,
        )


def indexes_missing(seen: Examination) -> Iterator[Diagnosis]:
    """Diagnose indexes that keep jobs unique and reads short."""
    missing = [] if seen.pending else list(seen.setup.missing_indexes)
    for words, names in (("missing", missing), ("invalid", list(seen.setup.invalid_indexes))):
        if names:
            yield Diagnosis(
                Level.ERROR,
                f"indexes_{words}",
                f"{_names(names)} {_are(names)} {words}: keys may not be unique, or reads take long.",
                "Create them as manage.py sqlmigrate shows; an invalid one with REINDEX INDEX CONCURRENTLY.",
                "docs/explanation/model.md",
            )


def workers_differ(seen: Examination) -> Iterator[Diagnosis]:
    """Diagnose workers of another release than this one."""
    alive = seen.health.alive if seen.health else []
    others = sorted({one.version for one in alive} - {__version__})
    if others:
        names = [one.name for one in alive if one.version != __version__]
        yield Diagnosis(
            Level.WARNING,
            "workers_differ",
            f"Workers run other releases of jobqueue than this {__version__}: {', '.join(others)} ({_names(names)}).",
            "Restart them with this release. During a deploy, wait until the old ones have ended.",
            _RELEASE,
        )


def disk_full(seen: Examination) -> Iterator[Diagnosis]:
    """Diagnose disks with little space left."""
    for disk in {(one.free, one.size): one for one in seen.disks}.values():
        is_full, is_low = disk.free < FULL_AT, disk.free < min(LOW_AT, LOW_SHARE * disk.size)
        if is_full or is_low:
            yield Diagnosis(
                Level.ERROR if is_full else Level.WARNING,
                "disk_full" if is_full else "disk_low",
                f"The disk of {disk.path} has {megabytes(disk.free)} left, of {megabytes(disk.size)}.",
                "Free some space, or shorten RETENTION. On a full disk, nothing can be enqueued or completed.",
                "docs/how-to/retention.md",
            )


def no_datagrams(seen: Examination) -> Iterator[Diagnosis]:
    """Diagnose wake-ups that don't arrive on SQLite."""
    if seen.setup.sqlite and seen.setup.sqlite.file and seen.is_woken is False:
        yield Diagnosis(
            Level.WARNING,
            "no_wake_ups",
            "Wake-ups don't arrive: the runtime folder can't be used, so workers find new jobs only by polling.",
            "Set RUNTIME_DIR to a folder that web processes and workers of this user share.",
            "docs/reference/settings-and-checks.md#runtime_dir",
        )


def _names(names: list[str]) -> str:
    return ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")


def _are(names: list[str]) -> str:
    return "are" if len(names) > 1 else "is"


DIAGNOSES = (
    database_away,
    failed_checks,
    pending_migrations,
    indexes_missing,
    workers_differ,
    disk_full,
    no_datagrams,
)
