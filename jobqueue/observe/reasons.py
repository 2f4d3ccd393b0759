"""Why a job is not running: the reasons, in sentences that commands and pages share."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass
from datetime import datetime

from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from jobqueue import durations
from jobqueue.handlers.ambient import MAX_WAIT
from jobqueue.observe import turns
from jobqueue.observe.lane_reasons import lane_reason
from jobqueue.observe.wording import Wording
from jobqueue.policy.redaction import redact_text, secret_values
from jobqueue.records import JobRecord, LaneHold, LimitUse, PauseRecord, Scope, TurnPlace, WorkerRecord
from jobqueue.states import JobStatus

CAP = 10_000
#: The reasons of a job that waits for its turn. Only these depend on the number of jobs ahead of it.
ITS_TURN = frozenset({"next", "behind_others", "slots_busy"})
_ERROR_SHOWN = 300

#: The texts for ``end_reason``. A reason that a handler gave is shown as it is.
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
    Scope.QUEUE: _("The queue %(name)s has been paused since %(when)s"),
    Scope.TYPE: _("The type %(name)s has been paused since %(when)s"),
}


@dataclass(frozen=True, slots=True)
class Reason:
    """One reason: a stable code and a sentence.

    ``error`` is the job's last error, if it says more. ``pause`` is the pause that holds the job back. ``needs_you``
    says that the job waits for a person.
    """

    code: str
    text: str
    error: str = ""
    pause: PauseRecord | None = None
    needs_you: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """The values that were read at one moment. ``ahead`` counts the due jobs that come first, up to ``cap``."""

    now: datetime
    job: JobRecord
    pauses: Sequence[PauseRecord]
    workers: Sequence[WorkerRecord]
    known_types: Set[str]
    ahead: int
    cap: int = CAP
    relays_to: str | None = None
    used_up: Sequence[LimitUse] = ()
    lane: LaneHold | None = None
    turn: TurnPlace | None = None

    @property
    def alive(self) -> list[WorkerRecord]:
        """Return the workers that have reported recently."""
        return [one for one in self.workers if one.is_alive(self.now)]


def reasons(scene: Scene, wording: Wording) -> list[Reason]:
    """List the reasons in the active language, the most important first."""
    match scene.job.status:
        case JobStatus.QUEUED | JobStatus.IN_PROGRESS if scene.relays_to and scene.job.lease_until is None:
            text = gettext("It waits to be relayed to %(database)s. Workers there run it; workers here don't.")
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
            found = [
                *_pauses(scene, wording),
                *_too_early(scene, wording),
                *_lane(scene, wording),
                *_limits(scene, wording),
                *(Reason("behind_turns", text) for text in turns.sentences(scene.turn, wording)),
                *_nobody(scene, wording),
            ]
            return found or [_its_turn(scene, wording)]


def _running(scene: Scene, wording: Wording) -> Reason:
    job, now = scene.job, scene.now
    about = {"made": job.attempts, "allowed": job.max_retries, "worker": job.lease_owner}
    if job.lease_until is not None and job.lease_until < now:
        lost = gettext(
            "Its worker %(worker)s was lost: the lease of attempt %(made)s of %(allowed)s expired %(ago)s."
        ) % {**about, "ago": wording.ago(job.lease_until, now)}
        if scene.alive:
            back = gettext("A live worker will recover the job within a minute.")
            return Reason("lease_expired", f"{lost} {back}")
        nobody = gettext("No worker is up that could recover the job.")
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
            text = gettext("It was cancelled (%(reason)s), %(when)s.") % {"reason": reason, "when": when}
    return Reason("failed", text, error=_last_error(job), needs_you=True)


def _dead(scene: Scene, wording: Wording) -> Reason:
    job = scene.job
    about = {"when": wording.when(job.completed_at, scene.now), "attempts": wording.attempts(job.attempts)}
    if job.end_reason:
        text = gettext("It has been a dead letter since %(when)s, after %(attempts)s (%(reason)s).") % {
            **about,
            "reason": END_REASONS.get(job.end_reason, job.end_reason),
        }
    else:
        text = gettext("It has been a dead letter since %(when)s, after %(attempts)s.") % about
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
    if job.error is None and (latest := _moved_until(job)) is not None:
        text = gettext(
            "It waits until %(moment)s, for %(length)s, because each new call moves it, at the latest to %(latest)s."
        ) % {**left, "latest": wording.moment(latest)}
        return [Reason("debounced", text)]
    if job.error is None:
        text = gettext("It is scheduled for later: it waits until %(moment)s, for %(length)s.") % left
        return [Reason("scheduled", text)]
    text = gettext(
        "It waits for its next attempt until %(moment)s, for %(length)s, after %(attempts)s of %(allowed)s."
    ) % {**left, "attempts": wording.attempts(job.attempts), "allowed": job.max_retries}
    return [Reason("waiting_for_retry", text, error=_last_error(job))]


def _moved_until(job: JobRecord) -> datetime | None:
    """Return up to when calls move a debounced job, or ``None`` if it is none."""
    seconds = job.context.get(MAX_WAIT) if isinstance(job.context, dict) else None
    try:
        return None if job.unique_key is None or seconds is None else job.created_at + durations.read(seconds)
    except (ValueError, OverflowError):  # another program wrote it
        return None


def _lane(scene: Scene, wording: Wording) -> list[Reason]:
    """Say which job holds it in its lane. That doesn't matter before the job is due."""
    told = lane_reason(scene.lane, scene.now, wording) if scene.lane and scene.job.scheduled_at <= scene.now else None
    return [Reason(*told, needs_you=told[0] == "lane_stopped")] if told else []


def _limits(scene: Scene, wording: Wording) -> list[Reason]:
    """Say which limits are used up. They don't matter before the job is due."""
    if scene.job.scheduled_at > scene.now:
        return []
    return [_rate(one, wording) if one.limit.per else _at_once(one, wording) for one in scene.used_up]


def _at_once(use: LimitUse, wording: Wording) -> Reason:
    about = {"used": wording.number(use.used), "number": wording.number(use.limit.number), **_target(use)}
    if use.limit.key:
        text = gettext("%(used)s of %(number)s jobs of the %(scope)s %(name)s with %(key)s %(value)s run now")
    else:
        text = gettext("%(used)s of %(number)s jobs of the %(scope)s %(name)s run now")
    rest = ", …" if use.used > len(use.running) else ""
    return Reason("limit_used_up", f"{text % about}: {', '.join(use.running)}{rest}.")


def _rate(use: LimitUse, wording: Wording) -> Reason:
    about = {"number": wording.number(use.limit.number), "per": f"{use.limit.per:g}", **_target(use)}
    if use.limit.key:
        text = gettext(
            "The rate of %(number)s in %(per)s s of the %(scope)s %(name)s with %(key)s %(value)s is used up"
        )
    else:
        text = gettext("The rate of %(number)s in %(per)s s of the %(scope)s %(name)s is used up")
    seconds = use.next_start.total_seconds() if use.next_start else 0.0
    wait = gettext("the next start is in %(wait)s s") % {"wait": f"{seconds:.1f}"}
    return Reason("rate_used_up", f"{text % about}; {wait}.")


def _target(use: LimitUse) -> dict[str, str]:
    scope = gettext("queue") if use.limit.scope is Scope.QUEUE else gettext("type")
    return {"scope": scope, "name": use.limit.name, "key": use.limit.key, "value": use.value}


def _nobody(scene: Scene, wording: Wording) -> list[Reason]:
    """Check that a worker takes such jobs. Each step looks at fewer workers than the one before."""
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
        return [
            Reason(
                "workers_stopping", gettext("The workers that could run the job are quiet or stopping."), needs_you=True
            )
        ]
    return []


def _none_up(silent: int, wording: Wording) -> str:
    if not silent:
        return gettext("No worker is up.")
    text = ngettext(
        "No worker is up. %(count)s worker stopped reporting.",
        "No worker is up. %(count)s workers stopped reporting.",
        silent,
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
    if scene.ahead and scene.turn is None:
        return Reason("behind_others", gettext("It is due%(behind)s.") % {"behind": behind})
    return Reason("next", gettext("It is due, and the next free slot takes it."))


def _behind(scene: Scene, wording: Wording) -> str:
    """Write how many jobs come first, as the end of a sentence."""
    if not scene.ahead or scene.turn is not None:  # in a fair queue, only turns come first
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
