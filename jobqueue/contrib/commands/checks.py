"""System checks of the allowed commands: they must exist, and be fit for jobs."""

from __future__ import annotations

from typing import Any

from django.core.checks import CheckMessage
from django.core.checks import Warning as Caution
from django.core.management import get_commands

from jobqueue import conf
from jobqueue.policy.nearest import did_you_mean

#: Commands that run arbitrary code or never end.
_NOT_FOR_JOBS = frozenset({"shell", "dbshell", "runserver", "testserver", "runworker", "jobqueue"})


def check_commands(**_: Any) -> list[CheckMessage]:
    """Check the list of allowed commands, unless ``jobqueue.E003`` reports it."""
    allowed = sorted(conf.get("COMMANDS")) if conf.is_sound() else []
    known = get_commands()
    return [
        *(_unknown(name, list(known)) for name in allowed if name not in known),
        *(_unfit(name) for name in allowed if name in known and name in _NOT_FOR_JOBS),
    ]


def _unknown(name: str, known: list[str]) -> CheckMessage:
    return Caution(
        f"JOBQUEUE['COMMANDS'] allows {name!r}, but there is no such management command.",
        hint=did_you_mean(name, known, "Is its app in INSTALLED_APPS?"),
        id="jobqueue_commands.W001",
    )


def _unfit(name: str) -> CheckMessage:
    return Caution(
        f"JOBQUEUE['COMMANDS'] allows {name!r}, which never ends or runs arbitrary code: anyone who can write a row "
        "into the job table could run anything.",
        hint="Allow only commands that do one thing and end.",
        id="jobqueue_commands.W002",
    )
