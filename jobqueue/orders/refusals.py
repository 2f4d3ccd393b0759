"""Reasons why nothing was done, in the user's language: refusals of the backends, and errors."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from jobqueue.errors import (
    DatabaseBusy,
    InvalidOption,
    NotEditable,
    NotMigrated,
    PayloadRefused,
    PayloadUnfit,
    UnknownJobType,
)
from jobqueue.models.job import STATUS_LABELS
from jobqueue.records import Ground, Refusal

WORDS = {
    Ground.MISSING: _("does not exist"),
    Ground.NOT_RETRIABLE: _("is %(status)s; only cancelled jobs and dead letters are retried"),
    Ground.KEY_IS_HELD: _("a newer job holds its unique key %(key)r"),
    Ground.NOT_QUEUED: _("is %(status)s; only queued jobs can be changed"),
    Ground.HAS_ENDED: _("is %(status)s already"),
    Ground.IS_RUNNING: _("is running; cancel it first"),
    Ground.HAS_CHANGED: _("has changed since it was looked at"),
}
#: The first class that matches counts. Texts about one payload or value come from pydantic or the handler, in English.
ERRORS = (
    (DatabaseBusy, _("The database was busy for too long. The remaining jobs were left alone. Try again.")),
    (NotMigrated, _("The queue's tables are missing. Migrate the database.")),
    (UnknownJobType, _("This release has no handler for jobs of this type.")),
    (NotEditable, _("Payloads of this type can't be edited.")),
    (PayloadUnfit, _("The payload does not fit its type: %(text)s")),
    (PayloadRefused, _("The payload cannot be stored: %(text)s")),
    (InvalidOption, _("Invalid value: %(text)s")),
)
_LABELS = dict(STATUS_LABELS)


def worded(refusals: Iterable[Refusal]) -> tuple[Refusal, ...]:
    """Translate the refusals of a backend into the active language. Those without a ground are left as they are."""
    return tuple(one if one.ground is None else replace(one, reason=_words(one.ground, one.about)) for one in refusals)


def predicate(refusal: Refusal) -> str:
    """Return why nothing was done so that the job, or each of several, can stand before it."""
    if refusal.ground is Ground.KEY_IS_HELD:
        return gettext("cannot be queued again: %(why)s") % {"why": refusal.reason}
    return refusal.reason


def _words(ground: Ground, about: str) -> str:
    return str(WORDS[ground]) % {"status": _LABELS.get(about, about), "key": about}


def error_told(error: Exception) -> str:
    """Describe an error in the active language. An unknown error keeps its own message."""
    words = next((words for kind, words in ERRORS if isinstance(error, kind)), None)
    if words is None:
        return str(error)
    text = "; ".join(map(": ".join, error.complaints)) if isinstance(error, PayloadUnfit) else str(error)
    return str(words) % {"text": text}
