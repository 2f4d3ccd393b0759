"""The query language of the search box, read as a filter and written from one.

Words are separated by spaces, and a job must match all of them. ``name:value`` matches one value, ``name:a,b`` one of
several. Quotes keep spaces and commas together; within them, a backslash escapes a quote. ``bare_word`` decides what a
word without a name means.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from operator import attrgetter
from typing import Any

from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from jobqueue.admin.search import bare_word, job_id
from jobqueue.admin.search.combine import NAMES, BadQuery, both
from jobqueue.admin.search.tokens import Token, items, parted, plain, quoted, scalar, words, written, written_scalar
from jobqueue.clock import SYSTEM, to_text
from jobqueue.durations import LONGEST_DURATION
from jobqueue.handlers.options import FIRST_MOMENT, LAST_MOMENT, in_utc
from jobqueue.policy.redaction import is_secret_name, redact_text
from jobqueue.records import LONGEST_SOUGHT, Filter, is_place
from jobqueue.states import JobStatus

__all__ = ["HELP", "QUALIFIERS", "BadQuery", "check", "parse", "read_status", "spelled"]

#: The limits of a query, more than anybody types.
LONGEST = 2_000
MOST_WORDS = 30
#: How many elements a path may have, and how many of them digits, which are tried as an index and as a key.
DEEPEST, MOST_PLACES = 12, 3

_LENGTH = re.compile(r"([0-9]{1,9})([smhdw])")
#: No time zone is further from UTC.
_DAY = timedelta(days=1)
_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
#: Typed for failures without a fingerprint, which are stored as an empty one.
_NO_FINGERPRINT = "none"


def parse(text: str) -> Filter:
    """Read a query. Raises BadQuery."""
    check(text)
    typed = words(text)
    if typed is None:
        raise BadQuery(gettext("A closing quotation mark is missing."))
    if len(typed) > MOST_WORDS:
        raise BadQuery(gettext("Use at most %(count)d words.") % {"count": MOST_WORDS})
    wanted = Filter()
    for word in dict.fromkeys(typed):
        wanted = both(wanted, _read(word))
    return wanted


def check(text: str) -> None:
    """Reject texts that are too long, or that no database accepts."""
    if len(text) > LONGEST:
        raise BadQuery(gettext("Use at most %(count)d characters.") % {"count": LONGEST})
    if "\0" in text or any("\ud800" <= letter <= "\udfff" for letter in text):
        raise BadQuery(gettext("This contains a character that no job can have."))


def _read(word: str) -> Filter:
    found = parted(word)
    if found is None:
        return bare_word.meant(plain(word).text)
    typed_name, value = found
    name, _dot, path = typed_name.partition(".")
    qualifier = QUALIFIERS.get(name.lower())
    if qualifier is None or (path and qualifier is not QUALIFIERS["payload"]):
        # Ids and keys may have colons, too.
        if named := bare_word.named(plain(word).text):
            return named
        raise BadQuery(_unknown(f"{typed_name}:"))
    if not value:
        raise BadQuery(_incomplete(f"{typed_name}:", qualifier.example))
    return qualifier.read(path, value)


def _unknown(name: str) -> str:
    said = gettext("There is no “%(name)s”.") % {"name": name}
    nearest = get_close_matches(name.lower(), [f"{one}:" for one in QUALIFIERS], n=1, cutoff=0.6)
    if nearest:
        nearest_is = gettext("Did you mean “%(name)s”?")
        return f"{said} {nearest_is % {'name': nearest[0]}}"
    there_is = gettext("Possible names are %(names)s. Put a word that contains a colon in quotes.")
    return f"{said} {there_is % {'names': ', '.join(f'{one}:' for one in QUALIFIERS)}}"


def _incomplete(name: str, example: str) -> str:
    return gettext("“%(name)s” needs a value, as in “%(example)s”.") % {"name": name, "example": example}


# Reading values

_AS_TYPED: Callable[[Token], str] = attrgetter("text")


def _several(field: str, one: Callable[[Token], str] = _AS_TYPED) -> Callable[[str, str], Filter]:
    def read(_path: str, value: str) -> Filter:
        found = items(value)
        if any(not word.text and not word.quoted for word in found):
            raise BadQuery(_incomplete(f"{NAMES[field]}:", QUALIFIERS[NAMES[field]].example))
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
        raise BadQuery(_incomplete("error:", QUALIFIERS["error"].example))
    if len(text) > LONGEST_SOUGHT:
        said = gettext("“error:” takes at most %(count)d characters. Leave out what differs from job to job.")
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
    return Filter(fingerprint="" if word == Token(_NO_FINGERPRINT, quoted=False) else word.text)


def _moment(field: str) -> Callable[[str, str], Filter]:
    return lambda _path, value: Filter(**{field: read_moment(plain(value).text)})  # type: ignore[arg-type]


def read_moment(text: str) -> datetime:
    """Read an ISO 8601 date or time, or how long ago it was. Without an offset it is in the project's time zone."""
    if found := _LENGTH.fullmatch(text.lower()):
        length = timedelta(seconds=int(found[1]) * _SECONDS[found[2]])
        if length <= LONGEST_DURATION:
            return SYSTEM.now() - length
    try:
        if moment := in_utc(_within_time(datetime.fromisoformat(text))):
            return moment
    except (ValueError, OverflowError):
        pass
    why = gettext("“%(text)s” is not a time. Write how long ago it was, such as 15m, 2h or 3d, or a date: 2026-01-31.")
    raise BadQuery(why % {"text": text})


def _within_time(moment: datetime) -> datetime:
    """Return the nearest moment that every time zone can say: no job was created before them all, or after."""
    if moment.tzinfo is not None:
        return min(max(moment.astimezone(UTC), FIRST_MOMENT), LAST_MOMENT)
    first, last = FIRST_MOMENT.replace(tzinfo=None) + _DAY, LAST_MOMENT.replace(tzinfo=None) - _DAY
    return min(max(moment, first), last)


# The names


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
        _("queued, in_progress, completed, failed or dead_letter. Several: a,b."),
        _several("statuses", lambda word: read_status(word.text)),
    ),
    "queue": Qualifier("queue:images", _("Jobs in this queue. Several: a,b."), _several("queues")),
    "error": Qualifier('error:"timed out"', _("Jobs whose error contains this text. Case is ignored."), _error),
    "payload": Qualifier(
        "payload.image_id:7",
        _('Jobs whose payload has this value at this path. 7 finds 7 and "7"; with quotes, only text is found.'),
        _payload,
    ),
    "tenant": Qualifier("tenant:acme", _("Jobs of this tenant."), _one("tenant")),
    "after": Qualifier(
        "after:2h", _("Jobs created after this time: 15m, 2h, 3d or 1w ago, or a date."), _moment("created_after")
    ),
    "before": Qualifier("before:2026-01-31", _("Jobs created before this time."), _moment("created_before")),
    "id": Qualifier("id:01J8*", _("The job with this id. With a star, all ids with this beginning."), _id),
    "key": Qualifier("key:order-7", _("The job with this idempotency key."), _one("idempotency_key")),
    "parent": Qualifier(
        "parent:01J8ZQ4Y3M6V7K2N5P8R1T4W6X", _("Jobs that this job enqueued."), _one("parent_id", job_id.of_parent)
    ),
    "worker": Qualifier("worker:host:4711:0c9d", _("Jobs running on this worker."), _one("lease_owner")),
    "fingerprint": Qualifier("fingerprint:3f2a", _("Jobs with this error fingerprint."), _fingerprint),
}

HELP = tuple((one.example, one.about) for one in QUALIFIERS.values())


# Writing


def spelled(wanted: Filter) -> str:
    """Write a filter as a query; ``parse`` reads the same filter."""
    return " ".join(_spelled(wanted))


def _spelled(wanted: Filter) -> Iterator[str]:
    for field in ("types", "statuses", "queues"):
        if values := getattr(wanted, field):
            yield f"{NAMES[field]}:{','.join(map(_written_item, sorted(values)))}"
    if wanted.ids:
        yield f"id:{','.join(_written_item(one, job_id.as_ulid(one)) for one in sorted(wanted.ids))}"
    if wanted.id_prefix:
        yield f"id:{_written_item(wanted.id_prefix, job_id.as_beginning(wanted.id_prefix))}*"
    if wanted.error:
        yield f"error:{written(wanted.error)}"
    for path, value in wanted.payload:
        yield f"payload.{quoted(path) if ':' in path else written(path)}:{written_scalar(value)}"
    for field in ("tenant", "idempotency_key", "parent_id", "lease_owner"):
        if (value := getattr(wanted, field)) is not None:
            is_other = field == "parent_id" and job_id.as_ulid(value) != value
            yield f"{NAMES[field]}:{quoted(value) if is_other else written(value)}"
    if wanted.fingerprint is not None:
        name = quoted(_NO_FINGERPRINT) if wanted.fingerprint == _NO_FINGERPRINT else written(wanted.fingerprint)
        yield f"fingerprint:{name if wanted.fingerprint else _NO_FINGERPRINT}"
    for name, moment in (("after", wanted.created_after), ("before", wanted.created_before)):
        if moment is not None:
            yield f"{name}:{to_text(moment)}"


def _written_item(value: str, read_as: str | None = None) -> str:
    """Write one of several values: in quotes if it would be read as another one without them."""
    return quoted(value) if value.endswith("*") or read_as not in (None, value) else written(value)
