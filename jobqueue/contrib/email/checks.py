"""System checks of ``EMAIL_VIA``, the backend that sends the e-mails."""

from __future__ import annotations

from typing import Any

from django.core.checks import CheckMessage, Error

from jobqueue import conf
from jobqueue.contrib.email.courier import mailers, why_missing

OWN = "jobqueue.contrib.email.EmailBackend"
_OWN = (OWN, "jobqueue.contrib.email.backend.EmailBackend")


def check_courier(**_: Any) -> list[CheckMessage]:
    """Check the sending backend, unless ``jobqueue.E003`` reports the settings."""
    if not conf.is_sound():
        return []
    via, known = conf.get("EMAIL_VIA"), mailers()
    if known is None:
        return [_circle()] if via in _OWN else _unknown(via)
    if via not in known:
        return [
            Error(
                f"JOBQUEUE['EMAIL_VIA'] is {via!r}, but MAILERS has no such alias.",
                hint="Use the alias of the mailer that sends e-mails.",
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
            hint="Use the full dotted path of the backend that sends e-mails.",
            id="jobqueue_email.E003",
        )
    ]


def _circle() -> CheckMessage:
    return Error(
        "JOBQUEUE['EMAIL_VIA'] names the backend that enqueues, so each e-mail would be enqueued again and again.",
        hint="Use the backend that sends e-mails, such as 'django.core.mail.backends.smtp.EmailBackend'.",
        id="jobqueue_email.E001",
    )
