"""The reasons why a job is not running, each with a command that helps."""

from __future__ import annotations

from dataclasses import dataclass
from shlex import quote

from django.utils import translation

from jobqueue.cli.values import WORDING
from jobqueue.observe import reasons as observed
from jobqueue.observe.reasons import Scene
from jobqueue.records import JobRecord


@dataclass(frozen=True, slots=True)
class ReasonWithCommand:
    """One reason: a stable code, a sentence, a command, and whether the job needs a person to act."""

    code: str
    text: str
    command: str | None = None
    needs_you: bool = False


def reasons(scene: Scene) -> list[ReasonWithCommand]:
    """List the reasons, the most important first, in English like all output of the commands."""
    with translation.override(None):
        return [_told(one, scene.job) for one in observed.reasons(scene, WORDING)]


def _told(one: observed.Reason, job: JobRecord) -> ReasonWithCommand:
    text = f"{one.text} Its last error: {one.error}" if one.error else one.text
    return ReasonWithCommand(one.code, text, _command(one, job), one.needs_you)


def _command(one: observed.Reason, job: JobRecord) -> str | None:
    if one.pause is not None:
        return f"manage.py jobqueue resume {_option(f'--{one.pause.scope}', one.pause.name)}"
    match one.code:
        case "failed" | "dead_letter":
            return f"manage.py jobqueue retry {'-- ' if job.id.startswith('-') else ''}{quote(job.id)}"
        case "queue_not_served" | "workers_stopping":
            return f"manage.py runworker {_option('--queue', job.queue)}"
        case "no_worker":
            return "manage.py runworker"
        case "lane_stopped":
            return "manage.py jobqueue lanes " + _option("--queue", job.queue)
        case "lease_expired" if one.needs_you:
            return "manage.py runworker"
    return None


def _option(name: str, value: str) -> str:
    """Write an option, quoted: a name from the table must not become a command or another option."""
    return f"{name}{'=' if value.startswith('-') else ' '}{quote(value)}"
