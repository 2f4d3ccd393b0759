"""Why a job is not running: from what was read of it, its queue and the workers, in words that all share who tell."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from jobqueue.policy.redaction import redact_text, secret_values
from jobqueue.records import JobRecord, PauseRecord, Scope, WorkerRecord
from jobqueue.states import JobStatus

CAP = 10_000
#: The reasons of a job that nothing holds back: only these depend on how many others come first.
ITS_TURN = frozenset({"next", "behind_others", "slots_busy"})
_ERROR_SHOWN = 300

#: What ``end_reason`` says, for people; what a job says of its own is not among them.
END_REASONS = {
    "attempts used up": _("attempts used up"),
    "not retryable": _("not retryable"),
    "discarded": _("discarded"),
    "invalid payload": _("invalid payload"),
    "unusable result": _("unusable result"),
    "timed out": _("timed out"),
    "crashed": _("crashed"),
    "lease lost": _("lease lost"),
    "cancelled": _("cancelled"),
    "expired": _("expired"),
    "not UTF-8": _("not UTF-8"),
    "unreadable": _("unreadable"),
    "duplicate": _("duplicate"),
    "not relayed": _("not relayed"),
}
_PAUSED = {
    Scope.QUEUE: _("The queue %(name)s is paused since %(when)s"),
    Scope.TYPE: _("The type %(name)s is paused since %(when)s"),
}


@dataclass(frozen=True, slots=True)
class Wording:
    """How whoever tells it writes moments, lengths of time and numbers."""

    moment: Callable[[datetime], str]
    length: Callable[[timedelta], str]
    ago: Callable[[datetime, datetime], str]
    number: Callable[[int], str]

    def when(self, value: datetime | None, now: datetime) -> str:
        """Write a moment and how far it is from now."""
        return gettext("at an unknown time") if value is None else f"{self.moment(value)} ({self.ago(value, now)})"

    def attempts(self, count: int) -> str:
        """Write a number of attempts."""
        return ngettext("%(count)s attempt", "%(count)s attempts", int(count)) % {"count": self.number(count)}


@dataclass(frozen=True, slots=True)
class Reason:
    """One reason: a stable code, the sentence, the job's last error where it says more, the pause it tells of, and
    whether the job waits for a person.
    """

    code: str
    text: str
    error: str = ""
    pause: PauseRecord | None = None
    needs_you: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """What was read at one moment; ``ahead`` counts the due jobs that come first, up to ``cap``."""

    now: datetime
    job: JobRecord
    pauses: Sequence[PauseRecord]
    workers: Sequence[WorkerRecord]
    known_types: Set[str]
    ahead: int
    cap: int = CAP
    relays_to: str | None = None

    @property
    def alive(self) -> list[WorkerRecord]:
        """The workers heard of lately."""
        return [one for one in self.workers if one.is_alive(self.now)]


def reasons(scene: Scene, wording: Wording) -> list[Reason]:
    """Say why, the reason that weighs most first, in the language that is active."""
    match scene.job.status:
        case JobStatus.QUEUED | JobStatus.IN_PROGRESS if scene.relays_to and scene.job.lease_until is None:
            text = gettext("It waits to be relayed to %(database)s, where it is run; it is not run here.")
            return [Reason("relayed", text % {"database": scene.relays_to})]
        case JobStatus.IN_PROGRESS:
            return [_running(scene, wording)]
        case JobStatus.COMPLETED:
            when = wording.when(scene.job.completed_at, scene.now)
            return [Reason("completed", gettext("It completed %(when)s.") % {"when": when})]
        case JobStatus.FAILED:
            return [_failed(scene, wording)]
        case JobStatus.DEAD_LETTER:
            return [_dead(scene, wording)]
        case _:
            found = [*_pauses(scene, wording), *_too_early(scene, wording), *_nobody(scene, wording)]
            return found or [_its_turn(scene, wording)]


def _running(scene: Scene, wording: Wording) -> Reason:
    job, now = scene.job, scene.now
    about = {"made": job.attempts, "allowed": job.max_retries, "worker": job.lease_owner}
    if job.lease_until is not None and job.lease_until < now:
        lost = gettext(
            "Its worker %(worker)s was lost: the lease of attempt %(made)s of %(allowed)s ran out %(ago)s."
        ) % {**about, "ago": wording.ago(job.lease_until, now)}
        if scene.alive:
            back = gettext("A live worker takes it back within its next sweep.")
            return Reason("lease_expired", f"{lost} {back}")
        nobody = gettext("No worker is up to take it back.")
        return Reason("lease_expired", f"{lost} {nobody}", needs_you=True)
    text = gettext("It is running: attempt %(made)s of %(allowed)s, on %(worker)s, since %(when)s.") % {
        **about,
        "when": wording.when(job.started_at, now),
    }
    if job.cancel_requested_at is not None:
        asked = gettext("It was asked to stop %(ago)s.") % {"ago": wording.ago(job.cancel_requested_at, now)}
        text = f"{text} {asked}"
    return Reason("running", text)


def _failed(scene: Scene, wording: Wording) -> Reason:
    job, when = scene.job, wording.when(scene.job.completed_at, scene.now)
    match job.end_reason or "":
        case "cancelled":
            text = gettext("It was cancelled, %(when)s.") % {"when": when}
        case "expired":
            text = gettext("It expired before it ran, %(when)s.") % {"when": when}
        case other:
            reason = other or gettext("no reason is known")
            text = gettext("It was stopped (%(reason)s), %(when)s.") % {"reason": reason, "when": when}
    return Reason("failed", text, error=_last_error(job), needs_you=True)


def _dead(scene: Scene, wording: Wording) -> Reason:
    job = scene.job
    about = {"when": wording.when(job.completed_at, scene.now), "attempts": wording.attempts(job.attempts)}
    if job.end_reason:
        text = gettext("It is a dead letter since %(when)s, after %(attempts)s (%(reason)s).") % {
            **about,
            "reason": END_REASONS.get(job.end_reason, job.end_reason),
        }
    else:
        text = gettext("It is a dead letter since %(when)s, after %(attempts)s.") % about
    return Reason("dead_letter", text, error=_last_error(job), needs_you=True)


def _pauses(scene: Scene, wording: Wording) -> list[Reason]:
    names = {Scope.QUEUE: scene.job.queue, Scope.TYPE: scene.job.type}
    found = []
    for one in scene.pauses:
        if names[one.scope] == one.name:
            told = _PAUSED[one.scope] % {"name": one.name, "when": wording.when(one.paused_at, scene.now)}
            text = f"{told}: {one.reason}." if one.reason else f"{told}."
            found.append(Reason("paused", text, pause=one, needs_you=True))
    return found


def _too_early(scene: Scene, wording: Wording) -> list[Reason]:
    job, now = scene.job, scene.now
    if job.scheduled_at <= now:
        return []
    left = {"moment": wording.moment(job.scheduled_at), "length": wording.length(job.scheduled_at - now)}
    if job.error is None:
        text = gettext("It is scheduled for later: it waits until %(moment)s, for %(length)s.") % left
        return [Reason("scheduled", text)]
    text = gettext(
        "It waits for its next attempt until %(moment)s, for %(length)s, after %(attempts)s of %(allowed)s."
    ) % {**left, "attempts": wording.attempts(job.attempts), "allowed": job.max_retries}
    return [Reason("waiting_for_retry", text, error=_last_error(job))]


def _nobody(scene: Scene, wording: Wording) -> list[Reason]:
    """Say that no worker takes such jobs; each step asks fewer workers than the one before."""
    job, alive = scene.job, scene.alive
    if not alive:
        return [Reason("no_worker", _none_up(len(scene.workers), wording), needs_you=True)]
    serving = [one for one in alive if one.serves(job.queue)]
    if not serving:
        text = ngettext(
            "There is %(count)s worker up, and none serves the queue %(queue)s.",
            "There are %(count)s workers up, and none serves the queue %(queue)s.",
            len(alive),
        ) % {"count": wording.number(len(alive)), "queue": job.queue}
        return [Reason("queue_not_served", text, needs_you=True)]
    knowing = [one for one in serving if one.serves(job.queue, job.type)]
    if not knowing:
        known = job.type in scene.known_types
        text = (
            gettext("No live worker of its queue knows the type %(type)s.")
            if known
            else gettext(
                "No live worker of its queue knows the type %(type)s, and this release has no handler for it either."
            )
        )
        return [Reason("type_not_served", text % {"type": job.type}, needs_you=True)]
    if not any(one.takes(job.queue, job.type) for one in knowing):
        return [Reason("workers_stopping", gettext("The workers that could run it are stopping."), needs_you=True)]
    return []


def _none_up(silent: int, wording: Wording) -> str:
    if not silent:
        return gettext("No worker is up.")
    text = ngettext(
        "No worker is up; %(count)s worker fell silent.", "No worker is up; %(count)s workers fell silent.", silent
    )
    return text % {"count": wording.number(silent)}


def _its_turn(scene: Scene, wording: Wording) -> Reason:
    job = scene.job
    able = [one for one in scene.alive if one.serves(job.queue, job.type)]
    slots, busy = sum(one.slots for one in able), sum(one.busy for one in able)
    behind = _behind(scene, wording)
    if busy >= slots:
        text = ngettext(
            "It is due, and the %(slots)s slot that could run it is busy%(behind)s.",
            "It is due, and all %(slots)s slots that could run it are busy%(behind)s.",
            slots,
        )
        return Reason("slots_busy", text % {"slots": slots, "behind": behind})
    if scene.ahead:
        return Reason("behind_others", gettext("It is due%(behind)s.") % {"behind": behind})
    return Reason("next", gettext("It is due, and the next free slot takes it."))


def _behind(scene: Scene, wording: Wording) -> str:
    """Return how many come first, as the end of a sentence."""
    if not scene.ahead:
        return ""
    if scene.ahead >= scene.cap:
        text = gettext(", behind %(count)s or more due jobs that come first")
    else:
        text = ngettext(
            ", behind %(count)s due job that comes first", ", behind %(count)s due jobs that come first", scene.ahead
        )
    return text % {"count": wording.number(scene.ahead)}


def _last_error(job: JobRecord) -> str:
    if not job.error:
        return ""
    error = " ".join(redact_text(job.error, secret_values(job.payload)).split())
    return error if len(error) <= _ERROR_SHOWN else f"{error[: _ERROR_SHOWN - 1]}…"
