"""The names of the query language, and how their values are read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from jobqueue.admin.search import job_id
from jobqueue.admin.search.combine import NAMES, BadQuery
from jobqueue.admin.search.tokens import Token, items, plain, scalar
from jobqueue.admin.search.values import read_moment, read_moments, read_range
from jobqueue.policy.redaction import is_secret_name, redact_text
from jobqueue.records import LONGEST_SOUGHT, Filter, is_place
from jobqueue.states import JobStatus

#: How many elements a path may have, and how many of them digits, which are tried as an index and as a key.
DEEPEST, MOST_PLACES = 12, 3
#: Typed for failures without a fingerprint, which are stored as an empty one.
NO_FINGERPRINT = "none"
#: The reasons for which a job failed that are read like a status.
AS_STATUS = {"cancelled": "cancelled", "canceled": "cancelled", "expired": "expired", "duplicate": "duplicate"}


def incomplete(name: str, example: str) -> str:
    """Return why a name needs a value."""
    return gettext("“%(name)s” needs a value, as in “%(example)s”.") % {"name": name, "example": example}


_AS_TYPED: Callable[[Token], str] = attrgetter("text")


def _several(field: str, one: Callable[[Token], str] = _AS_TYPED) -> Callable[[str, str], Filter]:
    def read(_path: str, value: str) -> Filter:
        found = items(value)
        if any(not word.text and not word.quoted for word in found):
            raise BadQuery(incomplete(f"{NAMES[field]}:", QUALIFIERS[NAMES[field]].example))
        return Filter(**{field: frozenset(map(one, found))})  # type: ignore[arg-type]

    return read


def _one(field: str, one: Callable[[Token], str] = _AS_TYPED) -> Callable[[str, str], Filter]:
    return lambda _path, value: Filter(**{field: one(plain(value))})  # type: ignore[arg-type]


def read_status(text: str) -> JobStatus:
    """Read a status, written with hyphens or underscores."""
    try:
        return JobStatus(text.lower().replace("-", "_"))
    except ValueError:
        names = {"text": text, "names": ", ".join(JobStatus)}
        raise BadQuery(gettext("There is no status “%(text)s”. Possible are %(names)s.") % names) from None


def _id(path: str, value: str) -> Filter:
    start = value.removesuffix("*")
    stars = any(word.text.endswith("*") and not word.quoted for word in items(start))
    if start == value and not stars:
        return _several("ids", job_id.of_job)(path, value)
    if stars or len(items(start)) > 1 or not plain(start).text:
        raise BadQuery(gettext("“id:” takes complete ids, or the beginning of one, as in “id:01J8*”."))
    return Filter(id_prefix=job_id.beginning(plain(start)))


def _error(_path: str, value: str) -> Filter:
    text = plain(value).text
    if not text:
        raise BadQuery(incomplete("error:", QUALIFIERS["error"].example))
    if len(text) > LONGEST_SOUGHT:
        said = gettext("“error:” takes at most %(count)d characters. Leave out the parts that differ from job to job.")
        raise BadQuery(said % {"count": LONGEST_SOUGHT})
    if redact_text(text) != text:
        raise BadQuery(_secret(text))
    return Filter(error=text)


def _payload(path: str, value: str) -> Filter:
    elements = plain(path).text.split(".")
    if not all(elements):
        raise BadQuery(gettext("“payload” needs a path, as in “payload.image_id:7”."))
    if len(elements) > DEEPEST or sum(map(is_place, elements)) > MOST_PLACES:
        raise BadQuery(gettext("The path “%(path)s” is too deep.") % {"path": path})
    if any(letter in "".join(elements) for letter in '\\"'):
        raise BadQuery(gettext("A path can't contain quotes or backslashes."))
    word = plain(value)
    for name in elements:
        if is_secret_name(name):
            raise BadQuery(_secret(name))
    if redact_text(word.text) != word.text:
        raise BadQuery(_secret(word.text))
    return Filter(payload=((".".join(elements), scalar(word)),))


def _secret(text: str) -> str:
    return gettext("“%(text)s” looks like a secret. Secrets can't be searched for.") % {"text": text}


def _fingerprint(_path: str, value: str) -> Filter:
    word = plain(value)
    return Filter(fingerprint="" if word == Token(NO_FINGERPRINT, quoted=False) else word.text)


def _status(path: str, value: str) -> Filter:
    """Read statuses, or a reason for which jobs failed."""
    names = [word.text.lower() for word in items(value)]
    reasons = [name for name in names if name in AS_STATUS]
    if not reasons:
        return _several("statuses", lambda word: read_status(word.text))(path, value)
    if len(names) > 1:
        said = gettext("“%(name)s” can't be combined with other statuses. Write “status:%(name)s” by itself.")
        raise BadQuery(said % {"name": reasons[0]})
    return Filter(statuses=frozenset({JobStatus.FAILED}), end_reasons=frozenset({AS_STATUS[names[0]]}))


def _class(_path: str, value: str) -> Filter:
    text = plain(value).text
    if not text:
        raise BadQuery(incomplete("class:", QUALIFIERS["class"].example))
    if len(text) > LONGEST_SOUGHT:
        raise BadQuery(gettext("“class:” takes at most %(count)d characters.") % {"count": LONGEST_SOUGHT})
    return Filter(error_class=text)


def _moment(field: str) -> Callable[[str, str], Filter]:
    return lambda _path, value: Filter(**{field: read_moment(plain(value).text)})  # type: ignore[arg-type]


def _ended(*statuses: JobStatus) -> Callable[[str, str], Filter]:
    def read(_path: str, value: str) -> Filter:
        after, before = read_moments(plain(value).text)
        return Filter(statuses=frozenset(statuses), ended_after=after, ended_before=before)

    return read


def _numbers(field: str) -> Callable[[str, str], Filter]:
    return lambda _path, value: Filter(**{field: read_range(plain(value).text)})  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class Qualifier:
    """A name that can precede a colon: an example, its meaning, and how its value is read."""

    example: str
    about: Any
    read: Callable[[str, str], Filter]


QUALIFIERS = {
    "type": Qualifier("type:resize_image", _("Jobs of this type. Several: a,b."), _several("types")),
    "status": Qualifier(
        "status:dead_letter",
        _("queued, in_progress, completed, failed or dead_letter. Several: a,b. Also cancelled, expired or duplicate."),
        _status,
    ),
    "queue": Qualifier("queue:images", _("Jobs in this queue. Several: a,b."), _several("queues")),
    "error": Qualifier(
        'error:"timed out"', _("Jobs whose last error, its text or its class, contains this. Case is ignored."), _error
    ),
    "payload": Qualifier(
        "payload.image_id:7",
        _('Jobs whose payload has this value at this path. 7 finds 7 and "7"; with quotes, only text is found.'),
        _payload,
    ),
    "class": Qualifier(
        "class:TimeoutError", _("Jobs whose last error has a class with this in its name. Case is ignored."), _class
    ),
    "tenant": Qualifier("tenant:acme", _("Jobs of this tenant."), _one("tenant")),
    "after": Qualifier(
        "after:2h", _("Jobs created after this time: 15m, 2h, 3d or 1w ago, or a date."), _moment("created_after")
    ),
    "before": Qualifier("before:2026-01-31", _("Jobs created before this time."), _moment("created_before")),
    "ended": Qualifier(
        "ended:2h",
        _("Jobs that ended after this time. Between two times: ended:2d..1d. Before a time: ended:..1w."),
        _ended(),
    ),
    "died": Qualifier("died:2h", _("Dead letters that were given up after this time."), _ended(JobStatus.DEAD_LETTER)),
    "priority": Qualifier("priority:1..3", _("Jobs of these priorities: 1, 1..3, >3 or <3."), _numbers("priority")),
    "attempts": Qualifier("attempts:>1", _("Jobs with this number of attempts."), _numbers("attempts")),
    "reason": Qualifier(
        'reason:"timed out"', _("Jobs that ended for this reason. Several: a,b."), _several("end_reasons")
    ),
    "id": Qualifier("id:01J8*", _("The job with this id. With a star, all ids with this beginning."), _id),
    "key": Qualifier("key:order-7", _("The job with this idempotency key."), _one("idempotency_key")),
    "parent": Qualifier(
        "parent:01J8ZQ4Y3M6V7K2N5P8R1T4W6X", _("Jobs that this job enqueued."), _one("parent_id", job_id.of_parent)
    ),
    "worker": Qualifier("worker:host:4711:0c9d", _("Jobs running on this worker."), _one("lease_owner")),
    "fingerprint": Qualifier("fingerprint:3f2a", _("Jobs with this error fingerprint."), _fingerprint),
}
