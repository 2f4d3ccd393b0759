"""System checks of the e-mail jobs: somebody has to send in the end."""

from __future__ import annotations

from typing import Any

from django.core.checks import CheckMessage, Error

from jobqueue import conf
from jobqueue.contrib.email.courier import mailers, why_missing

OWN = "jobqueue.contrib.email.EmailBackend"
_OWN = (OWN, "jobqueue.contrib.email.backend.EmailBackend")


def check_courier(**_: Any) -> list[CheckMessage]:
    """Check who sends; what ``jobqueue.E003`` tells of is not told again."""
    if not conf.is_sound():
        return []
    via, known = conf.get("EMAIL_VIA"), mailers()
    if known is None:
        return [_circle()] if via in _OWN else _unknown(via)
    if via not in known:
        return [
            Error(
                f"JOBQUEUE['EMAIL_VIA'] is {via!r}, and MAILERS has no such alias.",
                hint="Name the alias of the mailer that really sends.",
                id="jobqueue_email.E002",
            )
        ]
    return [_circle()] if known[via].get("BACKEND") in _OWN else []


def _unknown(backend: str) -> list[CheckMessage]:
    if not (why := why_missing()):
        return []
    return [
        Error(
            f"JOBQUEUE['EMAIL_VIA'] is {backend!r}, which cannot be imported: {why}",
            hint="Name the backend that really sends, in full.",
            id="jobqueue_email.E003",
        )
    ]


def _circle() -> CheckMessage:
    return Error(
        "JOBQUEUE['EMAIL_VIA'] names the backend that enqueues: each e-mail would be enqueued for ever.",
        hint="Name the backend that really sends, such as 'django.core.mail.backends.smtp.EmailBackend'.",
        id="jobqueue_email.E001",
    )
