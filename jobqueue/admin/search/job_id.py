"""A job's id as it is typed: also in small letters, or with I and L for 1 and O for 0, as Crockford's base 32 has it.

Ids of other programs are any text, so an id that there is stays as it was typed. So does one in quotes.
"""

from __future__ import annotations

import re

from jobqueue.admin.search.tokens import Token
from jobqueue.backends import current
from jobqueue.ids import is_ulid
from jobqueue.records import Filter

_BEGINNING = re.compile(r"[0-7][0-9A-HJKMNP-TV-Z]{0,25}")
_DIGITS = str.maketrans("ILO", "110")


def of_job(word: Token) -> str:
    """Read the id of a job."""
    ulid = as_ulid(word.text)
    return (
        ulid if not word.quoted and ulid != word.text and not _is_any(Filter(ids=frozenset({word.text}))) else word.text
    )


def of_parent(word: Token) -> str:
    """Read the id of a job that enqueued others; it may be gone."""
    ulid = as_ulid(word.text)
    return ulid if not word.quoted and ulid != word.text and not _is_any(Filter(parent_id=word.text)) else word.text


def beginning(word: Token) -> str:
    """Read the beginning of an id."""
    start = as_beginning(word.text)
    if word.quoted or start == word.text:
        return word.text
    following = current().jobs.find_ids(Filter(), 1, after_id=word.text)
    is_there = any(one.startswith(word.text) for one in following) or _is_any(Filter(ids=frozenset({word.text})))
    return word.text if is_there else start


def as_ulid(text: str) -> str:
    """Return the ULID that a text spells; any other text as it is."""
    ulid = as_beginning(text)
    return ulid if is_ulid(ulid) else text


def as_beginning(text: str) -> str:
    """Return the beginning of a ULID that a text spells; any other text as it is."""
    start = text.upper().translate(_DIGITS)
    return start if text.isascii() and _BEGINNING.fullmatch(start) else text


def _is_any(wanted: Filter) -> bool:
    return bool(current().jobs.count(wanted, 1))
