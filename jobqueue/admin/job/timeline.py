"""The timeline of a job: what happened to it, who did it, and what comes next.

The newest entry is last. It reads like a story, the next attempt is at its end, and new entries don't move older ones.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.utils.translation import gettext

from jobqueue.admin import display
from jobqueue.admin.job.history import EndedAttempt, Past
from jobqueue.admin.job.restarts import restarts, uncounted
from jobqueue.admin.links import Links
from jobqueue.models import Job
from jobqueue.observe.reasons import END_REASONS
from jobqueue.observe.terminal_safe import one_line
from jobqueue.policy.redaction import redact_beginning
from jobqueue.states import JobStatus

SIGNS = {"attempt": "✕", "back": "↺", "action": "✎", "asked": "■", "anew": "↻", "next": "…", "cut": "⋮"}
_FACT_LENGTH = 200
#: Statuses whose attempt has no history row: it is running, or succeeded.
_BEGAN = frozenset({JobStatus.IN_PROGRESS.value, JobStatus.COMPLETED.value})
#: An action is logged after it is done. If a worker begins the job before that, the action still comes first.
_LOGGED_WITHIN = timedelta(seconds=1)
_TRACE = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}")
_SENTRY_TRACE = re.compile("([0-9a-f]{32})-[0-9a-f]{16}(?:-[01])?")


@dataclass(frozen=True, slots=True)
class Fact:
    """A detail of an entry, maybe with a link. ``is_name`` marks an identifier, which is shown in monospace."""

    label: str
    value: str
    address: str = ""
    is_name: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineEntry:
    """One event, past or to come. The page recognizes it by its key when it updates."""

    key: str
    kind: str
    sign: str
    title: str
    at: datetime | None = None
    when: Any = ""
    facts: tuple[Fact, ...] = ()
    error_class: str = ""
    message: str = ""
    traceback: str = ""
    traceback_is_all: bool = True


def told(job: Job, past: Past, about: Mapping[str, Any], links: Links) -> list[TimelineEntry]:
    """List what happened; ``about`` is the job's context, redacted."""
    happened = [
        *_attempts(job, past, links),
        *_actions(past, links),
        *_this_attempt(job, past, links),
        *_asked(job),
    ]
    # The first and the last entries are known; those between are sorted by time.
    ends = {f"began-{one.fence}": one.ended_at for one in past.attempts}
    begins = [(entry.at, ends.get(entry.key)) for entry in happened if entry.kind == "in-progress"]
    happened.sort(key=lambda entry: _place(entry, job, [(job.cancel_requested_at, None), *begins]))
    return [_queued(job, about, links), *_cuts(past), *_lone_error(past), *happened, *_end(job)]


def to_come(job: Job, now: datetime) -> TimelineEntry | None:
    """Return the next attempt, if there will be one."""
    if job.status != JobStatus.QUEUED:
        return None
    number = {"number": job.attempts + 1, "allowed": job.max_retries}
    if job.scheduled_at > now:
        title = gettext("Attempt %(number)d of %(allowed)d %(when)s")
        title %= {**number, "when": display.ago(job.scheduled_at, now)}
    else:
        title = gettext("Attempt %(number)d of %(allowed)d, once a worker takes the job") % number
    return TimelineEntry(key="next", kind="next", sign=SIGNS["next"], title=title, when=display.at(job.scheduled_at))


def _place(
    entry: TimelineEntry, job: Job, outcomes: Sequence[tuple[datetime | None, datetime | None]]
) -> tuple[datetime, bool]:
    """Return where an entry stands. ``outcomes`` are what actions led to, each with its own end if it is over."""
    moment, is_action = entry.at or job.created_at, entry.kind == "action"
    for outcome, end in outcomes if is_action else ():
        if outcome and outcome < moment <= outcome + _LOGGED_WITHIN and (end is None or moment < end):
            return outcome, False
    return moment, not is_action


# The beginning


def _queued(job: Job, about: Mapping[str, Any], links: Links) -> TimelineEntry:
    return TimelineEntry(
        key="queued",
        kind="queued",
        sign=display.SIGNS[JobStatus.QUEUED],
        title=gettext("Queued"),
        at=job.created_at,
        when=display.at(job.created_at),
        facts=tuple(_origin(job, about, links)),
    )


def _origin(job: Job, about: Mapping[str, Any], links: Links) -> Iterator[Fact]:
    """Yield the origin of a job, as far as its row and context have it."""
    if job.parent_id:
        yield Fact(gettext("as a follow-up of"), one_line(job.parent_id), links.job(job.parent_id), True)
    if job.schedule_id:
        yield Fact(gettext("by the schedule"), one_line(job.schedule_id), links.schedule(job.schedule_id), True)
    labels = {"user": gettext("by"), "request_id": gettext("request"), "language": gettext("language")}
    for name, label in labels.items():
        if value := _fact(about.get(name)):
            yield Fact(label, value, is_name=name == "request_id")
    if trace := _fact(about.get("traceparent") or about.get("sentry-trace")):
        yield Fact(gettext("trace"), trace_of(about) or trace, is_name=True)


def trace_of(about: Mapping[str, Any]) -> str:
    """Return the id of the trace that a context belongs to, or an empty string."""
    for pattern, name in ((_TRACE, "traceparent"), (_SENTRY_TRACE, "sentry-trace")):
        given = about.get(name)
        if isinstance(given, str) and (found := pattern.fullmatch(given)):
            return found[1]
    return ""


def _fact(value: Any) -> str:
    """Format a value of the context, if it is a text or a number."""
    is_one = isinstance(value, str) or (isinstance(value, (int, float)) and not isinstance(value, bool))
    return one_line(redact_beginning(str(value), _FACT_LENGTH)[0]) if is_one else ""


# The past


def _cuts(past: Past) -> Iterator[TimelineEntry]:
    words = []
    if past.more_attempts:
        words.append(gettext("Earlier attempts are not shown."))
    if past.more_actions:
        words.append(gettext("Operators may have done more than is shown; see “History”."))
    for place, title in enumerate(words):
        yield TimelineEntry(key=f"cut-{place}", kind="cut", sign=SIGNS["cut"], title=title)


def _attempts(job: Job, past: Past, links: Links) -> Iterator[TimelineEntry]:
    """Yield the begin and the end of each attempt, and the restart that followed it if it wasn't logged."""
    lost = {one.key for one in uncounted(job, past) if not one.given_back}
    anew = {one.key for one in restarts(job, past)}
    since = job.created_at
    for one in past.attempts:
        # Clocks may disagree, but no attempt begins before the one before it has ended.
        at = (job.started_at if one.fence == job.fence else None) or one.began_at
        if at is not None and not (one.fence >= job.fence and job.status in _BEGAN):
            yield _began(job, one.fence, one.number, min(max(at, since), one.ended_at), _worker(one.owner, links))
        yield _ended(one, links, is_counted=one.key not in lost)
        if one.key in anew:
            yield _restarted(one, past)
        since = one.ended_at


def _began(job: Job, fence: int, number: int, at: datetime, facts: Iterable[Fact]) -> TimelineEntry:
    return TimelineEntry(
        key=f"began-{fence}",
        kind="in-progress",
        sign=display.SIGNS[JobStatus.IN_PROGRESS],
        title=gettext("Attempt %(number)d of %(allowed)d began") % {"number": number, "allowed": job.max_retries},
        at=at,
        when=display.at(at),
        facts=tuple(facts),
    )


def _ended(one: EndedAttempt, links: Links, *, is_counted: bool) -> TimelineEntry:
    kind = "back" if one.given_back else "attempt"
    title = gettext("Attempt %(number)d: %(ending)s")
    if not is_counted:
        title = gettext("Attempt %(number)d, not counted: %(ending)s")
    return TimelineEntry(
        key=one.key,
        kind=kind,
        sign=SIGNS[kind],
        title=title % {"number": one.number, "ending": one.ending},
        at=one.ended_at,
        when=display.at(one.ended_at),
        facts=tuple(_about(one, links)),
        error_class=one.error_class,
        message=one.message,
        traceback=one.traceback,
        traceback_is_all=one.traceback_is_all,
    )


def _lone_error(past: Past) -> Iterator[TimelineEntry]:
    if past.lone_error:
        title = gettext("An attempt failed")
        yield TimelineEntry(key="error", kind="attempt", sign=SIGNS["attempt"], title=title, message=past.lone_error)


def _about(one: EndedAttempt, links: Links) -> Iterator[Fact]:
    yield from _worker(one.owner, links)
    if one.took:
        yield Fact("", gettext("after %(took)s") % {"took": one.took})


def _worker(owner: str | None, links: Links) -> Iterator[Fact]:
    if owner:
        yield Fact(gettext("worker"), one_line(owner), links.worker(owner), True)


def _restarted(one: EndedAttempt, past: Past) -> TimelineEntry:
    """Return the entry of a retry that wasn't logged. It followed an attempt, at an unknown time."""
    whence = Fact("", gettext("not in the admin: by a command, by code or by another program"))
    return TimelineEntry(
        key=f"anew-{one.fence}",
        kind="anew",
        sign=SIGNS["anew"],
        title=gettext("Retried, with all its attempts"),
        at=one.ended_at,
        facts=() if past.more_actions else (whence,),
    )


def _actions(past: Past, links: Links) -> Iterator[TimelineEntry]:
    for one in past.actions:
        yield TimelineEntry(
            key=one.key,
            kind="action",
            sign=SIGNS["action"],
            title=gettext("%(user)s, in the admin") % {"user": one.who},
            at=one.done_at,
            when=one.when,
            message=one.words,
            facts=(Fact(gettext("order"), one.order, links.order(one.order), True),) if one.order else (),
        )


def _this_attempt(job: Job, past: Past, links: Links) -> Iterator[TimelineEntry]:
    """Yield the begin of the attempt that has no history row."""
    has_row = any(one.fence >= job.fence for one in past.attempts)
    if job.started_at is None or (has_row and job.status not in _BEGAN):
        return
    waited = Fact(gettext("after waiting"), display.took(_due_since(job, past), job.started_at))
    facts = [*_worker(job.lease_owner or job.completed_by, links), waited]
    yield _began(job, job.fence, job.attempts, job.started_at, facts)


def _due_since(job: Job, past: Past) -> datetime:
    """Return since when the attempt could have begun: after a snooze or release, not before the last one ended."""
    ends = [one.ended_at for one in past.attempts if job.started_at and one.ended_at <= job.started_at]
    return max([job.created_at, job.scheduled_at, *ends])


def _asked(job: Job) -> Iterator[TimelineEntry]:
    if at := job.cancel_requested_at:
        yield TimelineEntry(
            key="asked", kind="asked", sign=SIGNS["asked"], title=gettext("Asked to stop"), at=at, when=display.at(at)
        )


# The end


def _end(job: Job) -> Iterator[TimelineEntry]:
    match JobStatus(job.status):
        case JobStatus.COMPLETED:
            title = gettext("Completed")
        case JobStatus.FAILED:
            title = _stopped(job.end_reason or "")
        case JobStatus.DEAD_LETTER:
            reason = END_REASONS.get(job.end_reason or "", job.end_reason) or gettext("no reason is known")
            title = gettext("Given up: %(reason)s") % {"reason": one_line(str(reason))}
        case _:
            return
    yield TimelineEntry(
        key=f"end-{job.fence}",
        kind=job.status.replace("_", "-"),
        sign=display.SIGNS[JobStatus(job.status)],
        title=title,
        at=job.completed_at,
        when=display.at(job.completed_at) if job.completed_at else "",
        facts=tuple(_lengths(job)),
    )


def _stopped(reason: str) -> str:
    match reason:
        case "cancelled":
            return gettext("Cancelled")
        case "expired":
            return gettext("Expired before it ran")
        case "":
            return gettext("Cancelled")
    return gettext("Cancelled: %(reason)s") % {"reason": one_line(reason)}


def _lengths(job: Job) -> Iterator[Fact]:
    if job.completed_at is None:
        return
    if job.started_at is not None and job.status == JobStatus.COMPLETED:
        yield Fact(gettext("ran for"), display.took(job.started_at, job.completed_at))
    yield Fact(gettext("since it was queued"), display.took(job.created_at, job.completed_at))
