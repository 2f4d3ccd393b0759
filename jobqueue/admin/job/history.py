"""What is on record of a job's past: attempts that did not succeed, and what operators did from the admin."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.contrib.admin.models import LogEntry
from django.contrib.contenttypes.models import ContentType
from django.db.models import F, QuerySet
from django.utils import timezone
from django.utils.safestring import SafeString

from jobqueue import conf
from jobqueue.admin import display
from jobqueue.models import Attempt, Job
from jobqueue.observe.steering import harmless
from jobqueue.policy.redaction import redact_beginning, redact_end
from jobqueue.records import Ending

#: Of a history longer than this the page shows the end.
ATTEMPTS_SHOWN = 50
DEEDS_SHOWN = 50
#: Of messages and tracebacks together so many letters are shown, the newest first; and of each at least some.
LETTERS_SHOWN = 60_000
LETTERS_OF_EACH = 500
#: Django's log has no index on the object: so many of its entries the timeline looks at, and each page of the history.
LOG_LOOKED_AT, HISTORY_LOOKED_AT = 20_000, 100_000
HISTORY_SHOWN = 100

#: The log is kept by another clock than the jobs.
_SLACK = timedelta(minutes=1)

Secrets = Callable[[], Iterable[str]]

_GIVEN_BACK = frozenset({Ending.RELEASED.value, Ending.SNOOZED.value})
#: Where others ran beside it, nobody knows whose fault it was.
_LOST = frozenset({Ending.CRASHED.value, Ending.LEASE_LOST.value})


@dataclass(frozen=True, slots=True)
class Ended:
    """One attempt that did not succeed, fit to be shown; it may not have counted, so that the next has its number."""

    key: str
    fence: int
    number: int
    ending: str
    given_back: bool
    may_repeat: bool
    owner: str
    error_class: str
    message: str
    traceback: str
    traceback_is_all: bool
    took: str
    ended_at: datetime


@dataclass(frozen=True, slots=True)
class Deed:
    """One thing that an operator did, in the words that were logged."""

    key: str
    who: str
    words: str
    done_at: datetime

    @property
    def when(self) -> SafeString:
        """The moment as a page shows it."""
        return display.at(self.done_at)


@dataclass(frozen=True, slots=True)
class Deeds:
    """A stretch of the log, the newest first: what was found about a job, and where it goes on, if it does.

    What is older has keys below ``older``; all that was done since ``back_to`` was looked at.
    """

    found: tuple[Deed, ...] = ()
    older: int | None = None
    back_to: datetime | None = None


@dataclass(frozen=True, slots=True)
class Past:
    """All of it, each in order of time; whether there is more of either than is shown; an error without an attempt."""

    attempts: tuple[Ended, ...]
    more_attempts: bool
    deeds: tuple[Deed, ...]
    more_deeds: bool
    lone_error: str = ""


def past_of(job: Job, secrets: Secrets) -> Past:
    """Read the past of a job; ``secrets``, which may take long to find, are asked for if there is a text."""
    attempts, more_attempts = _attempts(job, secrets)
    deeds = _deeds(job, secrets, DEEDS_SHOWN, LOG_LOOKED_AT)
    # Another program keeps no history, but the error it met last.
    lone = display.clean(job.error, secrets()) if job.error and not attempts else ""
    return Past(attempts, more_attempts, deeds.found[::-1], deeds.older is not None, lone)


def mark(job: Job) -> tuple[object, ...]:
    """What is another once there is more past: the newest attempt and the newest entry of the log, whosever it is."""
    newest = _rows(job).values_list("pk", flat=True).first()
    return newest, LogEntry.objects.order_by("-pk").values_list("pk", flat=True).first()


def _rows(job: Job) -> QuerySet[Attempt]:
    return Attempt.objects.using(conf.get("DATABASE")).filter(job_id=job.pk).order_by("-fence")


def _attempts(job: Job, secrets: Secrets) -> tuple[tuple[Ended, ...], bool]:
    rows = list(_rows(job)[: ATTEMPTS_SHOWN + 1])
    shown, room = [], LETTERS_SHOWN
    for row in rows[:ATTEMPTS_SHOWN]:
        shown.append(_ended(row, secrets, room))
        room -= len(shown[-1].message) + len(shown[-1].traceback)
    return tuple(reversed(shown)), len(rows) > ATTEMPTS_SHOWN


def _ended(row: Attempt, secrets: Secrets, room: int) -> Ended:
    room = max(room, LETTERS_OF_EACH)
    known = tuple(secrets()) if row.message or row.traceback else ()
    message, all_of_message = redact_beginning(row.message, room, known)
    traceback, all_of_traceback = redact_end(row.traceback, max(room - len(message), LETTERS_OF_EACH), known)
    return Ended(
        key=f"attempt-{row.pk}",
        fence=row.fence,
        number=row.attempt,
        ending=str(row.get_ending_display()),
        given_back=row.ending in _GIVEN_BACK,
        may_repeat=row.ending in _GIVEN_BACK | _LOST,
        owner=row.owner,
        error_class=display.clean(row.error_class),
        message=harmless(message if all_of_message else f"{message}…"),
        traceback=harmless(traceback if all_of_traceback else f"…{traceback}"),
        traceback_is_all=all_of_traceback,
        took=display.duration(row.duration),
        ended_at=row.ended_at,
    )


def history_of(job: Job, secrets: Secrets, below: int | None) -> Deeds:
    """Read a page of what operators did to a job: the newest, or what has keys ``below``."""
    return _deeds(job, secrets, HISTORY_SHOWN, HISTORY_LOOKED_AT, below)


def _deeds(job: Job, secrets: Secrets, most: int, looked_at: int, below: int | None = None) -> Deeds:
    # By the keys alone, so that a gap in them is no stretch of nothing.
    keys = LogEntry.objects.order_by("-pk").values_list("pk", flat=True)
    newest = keys.first() if below is None else keys.filter(pk__lt=below).first()
    if newest is None:
        return Deeds()
    rows = list(_about(job).filter(pk__gt=newest - looked_at, pk__lte=newest)[: most + 1])
    found, edge = rows[:most], None if len(rows) > most else newest - looked_at
    older, back_to = (found[-1].pk, found[-1].action_time) if edge is None else _before(job, edge)
    known = tuple(secrets()) if found else ()
    return Deeds(tuple(_deed(row, known) for row in found), older, back_to and _aware(back_to))


def _about(job: Job) -> QuerySet[LogEntry]:
    """The entries about a job. All a planner can go by is the key: the index on the kind has all that are about jobs,
    that on the user all of a user.
    """
    kind = ContentType.objects.get_for_model(Job).pk
    rows = LogEntry.objects.alias(kind=F("content_type_id") + 0).filter(kind=kind, object_id=job.pk)
    return rows.prefetch_related("user").order_by("-pk")


def _before(job: Job, edge: int) -> tuple[int | None, datetime | None]:
    """Say where the log goes on that was looked at down to an edge; nowhere, once it is older than the job."""
    left = LogEntry.objects.filter(pk__lte=edge).order_by("-pk")
    moment = left.values_list("action_time", flat=True).first() if edge > 0 else None
    is_older = moment is None or _aware(moment) < job.created_at - _SLACK
    return (None, None) if is_older else (edge + 1, moment)


def _deed(row: LogEntry, secrets: tuple[str, ...]) -> Deed:
    words = row.get_change_message() or row.get_action_flag_display()
    return Deed(
        key=f"deed-{row.pk}",
        who=display.clean(row.user.get_username()),
        words=display.clean(str(words), secrets),
        done_at=_aware(row.action_time),
    )


def _aware(moment: datetime) -> datetime:
    return moment if timezone.is_aware(moment) else timezone.make_aware(moment)
