"""The search box: what is typed there read as a filter, and a filter spelled as one would type it.

Words are separated by blanks, and all of them must hold. ``name:value`` asks for one thing, ``name:a,b`` for one of
several; quotes keep blanks and commas together, with a backslash before a quote of the value's own. What a word without
a name means, ``lookup`` finds out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from difflib import get_close_matches
from typing import Any

from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from jobqueue.admin.search import bare_word
from jobqueue.admin.search.combine import NAMES, BadQuery, both
from jobqueue.admin.search.tokens import Word, items, parted, plain, quoted, scalar, words, written, written_scalar
from jobqueue.clock import SYSTEM, to_text
from jobqueue.errors import LONGEST_DURATION
from jobqueue.handlers.options import in_utc
from jobqueue.policy.redaction import is_secret_name, redact_text
from jobqueue.records import LONGEST_SOUGHT, Filter, is_place
from jobqueue.states import JobStatus

__all__ = ["HELP", "QUALIFIERS", "BadQuery", "check", "parse", "read_status", "spelled"]

#: More than anybody types.
LONGEST = 2_000
MOST_WORDS = 30
#: A path may have so many elements, and so many of them digits: each is looked for as a place and as a key.
DEEPEST, MOST_PLACES = 12, 3

_LENGTH = re.compile(r"([0-9]{1,9})([smhdw])")
_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
#: What stands for failures without a fingerprint, which is the empty one.
_NO_FINGERPRINT = "none"


def parse(text: str) -> Filter:
    """Read what was typed. Raises BadQuery with a sentence for who typed it."""
    check(text)
    typed = words(text)
    if typed is None:
        raise BadQuery(gettext("A quotation mark is not closed."))
    if len(typed) > MOST_WORDS:
        raise BadQuery(gettext("These are more than %(count)d words.") % {"count": MOST_WORDS})
    wanted = Filter()
    for word in dict.fromkeys(typed):
        wanted = both(wanted, _read(word))
    return wanted


def check(text: str) -> None:
    """Refuse what no database would be asked for."""
    if len(text) > LONGEST:
        raise BadQuery(gettext("This is longer than %(count)d characters.") % {"count": LONGEST})
    if "\0" in text or any("\ud800" <= letter <= "\udfff" for letter in text):
        raise BadQuery(gettext("This holds a character that no job can hold."))


def _read(word: str) -> Filter:
    found = parted(word)
    if found is None:
        return bare_word.meant(plain(word).text)
    typed_name, value = found
    name, _dot, path = typed_name.partition(".")
    qualifier = QUALIFIERS.get(name.lower())
    if qualifier is None or (path and qualifier is not QUALIFIERS["payload"]):
        # Ids and keys have colons too.
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
    there_is = gettext("There are %(names)s; put a word that has a colon of its own in quotes.")
    return f"{said} {there_is % {'names': ', '.join(f'{one}:' for one in QUALIFIERS)}}"


def _incomplete(name: str, example: str) -> str:
    return gettext("“%(name)s” needs a value, as in “%(example)s”.") % {"name": name, "example": example}


# Reading values


def _several(field: str, one: Callable[[str], str] = str) -> Callable[[str, str], Filter]:
    def read(_path: str, value: str) -> Filter:
        found = items(value)
        if any(not word.text and not word.quoted for word in found):
            raise BadQuery(_incomplete(f"{NAMES[field]}:", QUALIFIERS[NAMES[field]].example))
        return Filter(**{field: frozenset(one(word.text) for word in found)})  # type: ignore[arg-type]

    return read


def _one(field: str) -> Callable[[str, str], Filter]:
    return lambda _path, value: Filter(**{field: plain(value).text})  # type: ignore[arg-type]


def read_status(text: str) -> JobStatus:
    """Read a status, with a hyphen or an underscore."""
    try:
        return JobStatus(text.lower().replace("-", "_"))
    except ValueError:
        names = {"text": text, "names": ", ".join(JobStatus)}
        raise BadQuery(gettext("There is no status “%(text)s”. There are %(names)s.") % names) from None


def _id(path: str, value: str) -> Filter:
    start = value.removesuffix("*")
    stars = any(word.text.endswith("*") and not word.quoted for word in items(start))
    if start == value and not stars:
        return _several("ids")(path, value)
    if stars or len(items(start)) > 1 or not plain(start).text:
        raise BadQuery(gettext("“id:” takes whole ids, or the beginning of one, as in “id:01J8*”."))
    return Filter(id_prefix=plain(start).text)


def _error(_path: str, value: str) -> Filter:
    text = plain(value).text
    if not text:
        raise BadQuery(_incomplete("error:", QUALIFIERS["error"].example))
    if len(text) > LONGEST_SOUGHT:
        said = gettext("“error:” takes at most %(count)d characters; leave out what differs from job to job.")
        raise BadQuery(said % {"count": LONGEST_SOUGHT})
    if redact_text(text) != text:
        raise BadQuery(_secret(text))
    return Filter(error=text)


def _payload(path: str, value: str) -> Filter:
    elements = plain(path).text.split(".")
    if not all(elements):
        raise BadQuery(gettext("“payload” needs a path, as in “payload.image_id:7”."))
    if len(elements) > DEEPEST or sum(map(is_place, elements)) > MOST_PLACES:
        raise BadQuery(gettext("“%(path)s” leads too deep.") % {"path": path})
    if any(letter in "".join(elements) for letter in '\\"'):
        raise BadQuery(gettext("A path can hold neither quotes nor backslashes."))
    word = plain(value)
    for name in elements:
        if is_secret_name(name):
            raise BadQuery(_secret(name))
    if redact_text(word.text) != word.text:
        raise BadQuery(_secret(word.text))
    return Filter(payload=((".".join(elements), scalar(word)),))


def _secret(text: str) -> str:
    return gettext("“%(text)s” looks like a secret, and those cannot be searched for.") % {"text": text}


def _fingerprint(_path: str, value: str) -> Filter:
    word = plain(value)
    return Filter(fingerprint="" if word == Word(_NO_FINGERPRINT, quoted=False) else word.text)


def _moment(field: str) -> Callable[[str, str], Filter]:
    return lambda _path, value: Filter(**{field: read_moment(plain(value).text)})  # type: ignore[arg-type]


def read_moment(text: str) -> datetime:
    """Read how long ago it was, or a date or moment of ISO 8601, in the project's time zone unless it names one."""
    if found := _LENGTH.fullmatch(text.lower()):
        length = timedelta(seconds=int(found[1]) * _SECONDS[found[2]])
        if length <= LONGEST_DURATION:
            return SYSTEM.now() - length
    try:
        if moment := in_utc(datetime.fromisoformat(text)):
            return moment
    except (ValueError, OverflowError):
        pass
    why = gettext("“%(text)s” is no moment. Write how long ago it was, as 15m, 2h or 3d, or a date: 2026-01-31.")
    raise BadQuery(why % {"text": text})


# What there is


@dataclass(frozen=True, slots=True)
class Qualifier:
    """What can stand before a colon: an example, what it asks for, and how its value is read."""

    example: str
    about: Any
    read: Callable[[str, str], Filter]


QUALIFIERS = {
    "type": Qualifier("type:resize_image", _("Jobs of this type; of one of several: a,b."), _several("types")),
    "status": Qualifier(
        "status:dead_letter",
        _("queued, in_progress, completed, failed or dead_letter; one of several: a,b."),
        _several("statuses", read_status),
    ),
    "queue": Qualifier("queue:images", _("Jobs in this queue; in one of several: a,b."), _several("queues")),
    "error": Qualifier('error:"timed out"', _("Jobs whose error holds these words, in any case."), _error),
    "payload": Qualifier(
        "payload.image_id:7",
        _('Jobs whose payload has this value at this path; 7 finds 7 and "7", quotes find text alone.'),
        _payload,
    ),
    "tenant": Qualifier("tenant:acme", _("Jobs of this tenant."), _one("tenant")),
    "after": Qualifier("after:2h", _("Jobs created since: 15m, 2h, 3d, 1w ago, or a date."), _moment("created_after")),
    "before": Qualifier("before:2026-01-31", _("Jobs created before: the same."), _moment("created_before")),
    "id": Qualifier("id:01J8*", _("The job with this id; with a star, ids that begin so."), _id),
    "key": Qualifier("key:order-7", _("The job with this idempotency key."), _one("idempotency_key")),
    "parent": Qualifier("parent:01J8ZQ4Y3M6V7K2N5P8R1T4W6X", _("Jobs that this job enqueued."), _one("parent_id")),
    "worker": Qualifier("worker:host:4711:0c9d", _("Jobs that run on this worker."), _one("lease_owner")),
    "fingerprint": Qualifier("fingerprint:3f2a", _("Jobs with this kind of failure."), _fingerprint),
}

HELP = tuple((one.example, one.about) for one in QUALIFIERS.values())


# Spelling


def spelled(wanted: Filter) -> str:
    """Spell a filter so that ``parse`` reads the same one."""
    return " ".join(_spelled(wanted))


def _spelled(wanted: Filter) -> Iterator[str]:
    for field in ("types", "statuses", "queues", "ids"):
        if values := getattr(wanted, field):
            yield f"{NAMES[field]}:{','.join(map(_written_item, sorted(values)))}"
    if wanted.id_prefix:
        yield f"id:{_written_item(wanted.id_prefix)}*"
    if wanted.error:
        yield f"error:{written(wanted.error)}"
    for path, value in wanted.payload:
        yield f"payload.{quoted(path) if ':' in path else written(path)}:{written_scalar(value)}"
    for field in ("tenant", "idempotency_key", "parent_id", "lease_owner"):
        if (value := getattr(wanted, field)) is not None:
            yield f"{NAMES[field]}:{written(value)}"
    if wanted.fingerprint is not None:
        name = quoted(_NO_FINGERPRINT) if wanted.fingerprint == _NO_FINGERPRINT else written(wanted.fingerprint)
        yield f"fingerprint:{name if wanted.fingerprint else _NO_FINGERPRINT}"
    for name, moment in (("after", wanted.created_after), ("before", wanted.created_before)):
        if moment is not None:
            yield f"{name}:{to_text(moment)}"


def _written_item(value: str) -> str:
    return quoted(value) if value.endswith("*") else written(value)
