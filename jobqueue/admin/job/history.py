"""The past of a job: unsuccessful attempts, and what operators did in the admin."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from operator import attrgetter

from django.contrib.admin.models import LogEntry
from django.contrib.contenttypes.models import ContentType
from django.db.models import F, QuerySet
from django.utils import timezone
from django.utils.safestring import SafeString

from jobqueue import conf
from jobqueue.admin import display
from jobqueue.admin.job import ordered
from jobqueue.durations import LONGEST_DURATION
from jobqueue.models import Attempt, Job, Order
from jobqueue.observe.terminal_safe import harmless
from jobqueue.policy.redaction import redact_beginning, redact_end
from jobqueue.records import Ending

#: How many of the latest entries a job's page shows.
ATTEMPTS_SHOWN = 50
ACTIONS_SHOWN = 50
#: How many characters of messages and tracebacks are shown in all, the newest first, and at least of each.
LETTERS_SHOWN = 60_000
LETTERS_OF_EACH = 500
#: Django's log has no index on the object, so this many entries are searched: for the timeline, and for a history page.
LOG_LOOKED_AT, HISTORY_LOOKED_AT = 20_000, 100_000
HISTORY_SHOWN = 100

#: The log and the jobs are written with different clocks.
_SLACK = timedelta(minutes=1)

Secrets = Callable[[], Iterable[str]]

_GIVEN_BACK = frozenset({Ending.RELEASED.value, Ending.SNOOZED.value})
#: These may not count as attempts, since it is unknown which of several jobs caused the crash.
_LOST = frozenset({Ending.CRASHED.value, Ending.LEASE_LOST.value})


@dataclass(frozen=True, slots=True)
class EndedAttempt:
    """One unsuccessful attempt, redacted. If ``may_repeat``, the next attempt may have the same number.

    ``began_at`` is ``None`` if it is unknown, or not before the end.
    """

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
    began_at: datetime | None
    ended_at: datetime


@dataclass(frozen=True, slots=True)
class OperatorAction:
    """One action of an operator, as it was logged."""

    key: str
    who: str
    words: str
    done_at: datetime
    #: The id of the order that it was part of.
    order: str = ""

    @property
    def when(self) -> SafeString:
        """The time as a page shows it."""
        return display.at(self.done_at)


@dataclass(frozen=True, slots=True)
class ActionPage:
    """A page of the log about a job, the newest entry first.

    Older entries have keys below ``older``, which is ``None`` if there are none. The log was searched back to
    ``back_to``.
    """

    found: tuple[OperatorAction, ...] = ()
    older: int | None = None
    back_to: datetime | None = None


@dataclass(frozen=True, slots=True)
class Past:
    """The past, in order of time: attempts, operators' actions, and an error that belongs to no attempt."""

    attempts: tuple[EndedAttempt, ...]
    more_attempts: bool
    actions: tuple[OperatorAction, ...]
    more_actions: bool
    lone_error: str = ""


def past_of(job: Job, secrets: Secrets) -> Past:
    """Read the past of a job. ``secrets`` is only called if there is a text to redact: it may be slow."""
    attempts, more_attempts = _attempts(job, secrets)
    actions = _with_orders(job, secrets, ACTIONS_SHOWN, _actions(job, secrets, ACTIONS_SHOWN, LOG_LOOKED_AT))
    # Other programs may store the last error without a history.
    lone = display.clean(job.error, secrets()) if job.error and not attempts else ""
    return Past(attempts, more_attempts, actions.found[::-1], actions.older is not None, lone)


def mark(job: Job) -> tuple[object, ...]:
    """Values that change when the past grows: the keys of the newest attempt, order and log entry."""
    newest = _rows(job).values_list("pk", flat=True).first()
    return newest, ordered.newest(job), LogEntry.objects.order_by("-pk").values_list("pk", flat=True).first()


def last_error(job: Job) -> str:
    """Return the last error of a job that ended, with its class if the attempt's history has one."""
    error: str = job.error or ""
    last = _rows(job).values_list("error_class", "message").first()
    if last is None or not last[0] or last[1] != error:
        return error
    return f"{last[0]}: {error}"


def _rows(job: Job) -> QuerySet[Attempt]:
    return Attempt.objects.using(conf.get("DATABASE")).filter(job_id=job.pk).order_by("-fence")


def _attempts(job: Job, secrets: Secrets) -> tuple[tuple[EndedAttempt, ...], bool]:
    rows = list(_rows(job)[: ATTEMPTS_SHOWN + 1])
    shown, room = [], LETTERS_SHOWN
    for row in rows[:ATTEMPTS_SHOWN]:
        shown.append(_ended(row, secrets, room))
        room -= len(shown[-1].message) + len(shown[-1].traceback)
    return tuple(reversed(shown)), len(rows) > ATTEMPTS_SHOWN


def _ended(row: Attempt, secrets: Secrets, room: int) -> EndedAttempt:
    room = max(room, LETTERS_OF_EACH)
    known = tuple(secrets()) if row.message or row.traceback else ()
    message, all_of_message = redact_beginning(row.message, room, known)
    traceback, all_of_traceback = redact_end(row.traceback, max(room - len(message), LETTERS_OF_EACH), known)
    return EndedAttempt(
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
        began_at=_began(row),
        ended_at=row.ended_at,
    )


def _began(row: Attempt) -> datetime | None:
    """Return when an attempt began. Other programs may have written anything as its duration."""
    if row.duration is None or not 0 <= row.duration <= LONGEST_DURATION.total_seconds():
        return None
    try:
        return row.ended_at - timedelta(seconds=row.duration)
    except OverflowError:
        return None


def history_of(job: Job, secrets: Secrets, below: int | None) -> ActionPage:
    """Read a page of what operators did to a job: the newest entries, or those with keys below ``below``."""
    page = _actions(job, secrets, HISTORY_SHOWN, HISTORY_LOOKED_AT, below)
    return page if below is not None else _with_orders(job, secrets, HISTORY_SHOWN, page)


def _with_orders(job: Job, secrets: Secrets, most: int, page: ActionPage) -> ActionPage:
    """Add the newest orders that changed a job to the first page of its log."""
    found = ordered.orders_of(job, most)
    known = tuple(secrets()) if found else ()
    actions = sorted([*page.found, *(_ordered(one, known) for one in found)], key=attrgetter("done_at"), reverse=True)
    return replace(page, found=tuple(actions))


def _ordered(order: Order, secrets: tuple[str, ...]) -> OperatorAction:
    who, words = ordered.who_and_what(order)
    return OperatorAction(
        key=f"order-{order.pk}",
        who=display.clean(who),
        words=display.clean(words, secrets),
        done_at=order.given_at or order.asked_at,
        order=order.pk,
    )


def _actions(job: Job, secrets: Secrets, most: int, looked_at: int, below: int | None = None) -> ActionPage:
    # Start at an existing key, so that a gap in the keys doesn't make an empty page.
    keys = LogEntry.objects.order_by("-pk").values_list("pk", flat=True)
    newest = keys.first() if below is None else keys.filter(pk__lt=below).first()
    if newest is None:
        return ActionPage()
    rows = list(_about(job).filter(pk__gt=newest - looked_at, pk__lte=newest)[: most + 1])
    found, edge = rows[:most], None if len(rows) > most else newest - looked_at
    older, back_to = (found[-1].pk, found[-1].action_time) if edge is None else _before(job, edge)
    known = tuple(secrets()) if found else ()
    return ActionPage(tuple(_action(row, known) for row in found), older, back_to and _aware(back_to))


def _about(job: Job) -> QuerySet[LogEntry]:
    """Return the entries about a job, read along the primary key.

    The conditions are expressions, because no other index helps: that on the content type has the entries about all
    jobs, and that on the user has all entries of a user.
    """
    kind = ContentType.objects.get_for_model(Job).pk
    rows = LogEntry.objects.alias(kind=F("content_type_id") + 0).filter(kind=kind, object_id=job.pk)
    return rows.prefetch_related("user").order_by("-pk")


def _before(job: Job, edge: int) -> tuple[int | None, datetime | None]:
    """Return where a search that ended at ``edge`` continues: nowhere if the log there is older than the job."""
    left = LogEntry.objects.filter(pk__lte=edge).order_by("-pk")
    moment = left.values_list("action_time", flat=True).first() if edge > 0 else None
    is_older = moment is None or _aware(moment) < job.created_at - _SLACK
    return (None, None) if is_older else (edge + 1, moment)


def _action(row: LogEntry, secrets: tuple[str, ...]) -> OperatorAction:
    words = row.get_change_message() or row.get_action_flag_display()
    return OperatorAction(
        key=f"action-{row.pk}",
        who=display.clean(row.user.get_username()),
        words=display.clean(str(words), secrets),
        done_at=_aware(row.action_time),
    )


def _aware(moment: datetime) -> datetime:
    return moment if timezone.is_aware(moment) else timezone.make_aware(moment)
