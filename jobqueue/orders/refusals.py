"""Why nothing was done, in the language of whoever reads it: the grounds of the backends and the errors, worded."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

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
    Ground.NOT_RETRIABLE: _("is %(status)s; only failed jobs and dead letters are retried"),
    Ground.KEY_IS_HELD: _("a newer job holds its unique key %(key)r"),
    Ground.NOT_QUEUED: _("is %(status)s; only queued jobs can be changed"),
    Ground.HAS_ENDED: _("is %(status)s already"),
    Ground.IS_RUNNING: _("is running; cancel it first"),
    Ground.HAS_CHANGED: _("has changed since it was looked at"),
}
#: The first that fits. What is said of one payload or value stays in English: it is of pydantic, or of the handler.
ERRORS = (
    (DatabaseBusy, _("The database was busy for too long, and the rest was left alone. Try again.")),
    (NotMigrated, _("The queue's tables are missing. Migrate the database.")),
    (UnknownJobType, _("This release has no handler for jobs of this type.")),
    (NotEditable, _("Payloads of this type are not to be edited.")),
    (PayloadUnfit, _("The payload does not fit its type: %(text)s")),
    (PayloadRefused, _("The payload cannot be stored: %(text)s")),
    (InvalidOption, _("This cannot be: %(text)s")),
)
_LABELS = dict(STATUS_LABELS)


def worded(refusals: Iterable[Refusal]) -> tuple[Refusal, ...]:
    """Word what a backend refused in the language that is active; what is worded already stays."""
    return tuple(one if one.ground is None else replace(one, reason=_words(one.ground, one.about)) for one in refusals)


def _words(ground: Ground, about: str) -> str:
    return str(WORDS[ground]) % {"status": _LABELS.get(about, about), "key": about}


def error_told(error: Exception) -> str:
    """Word an error in the language that is active; one that is not known here says what it says."""
    words = next((words for kind, words in ERRORS if isinstance(error, kind)), None)
    if words is None:
        return str(error)
    text = "; ".join(map(": ".join, error.complaints)) if isinstance(error, PayloadUnfit) else str(error)
    return str(words) % {"text": text}
