"""Matches that count: what is redacted can't be searched for, neither in a list nor by an order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from django.db.models import QuerySet, TextField
from django.db.models.functions import Cast, Left, Length

from jobqueue import conf, foreign_json
from jobqueue.backends.sql.filters import last_class
from jobqueue.models import Job
from jobqueue.policy.redaction import hides, redact_text
from jobqueue.records import Filter, is_place
from jobqueue.records.outcome import MESSAGE_LIMIT

#: How many characters of errors and payloads are held in memory at a time.
LETTERS_HELD = 4_000_000
#: With many more ids, a query planner without statistics would read the whole table.
ASKED_FOR = 100


def texts_of(asked: Filter) -> Iterator[Any]:
    """List the expressions whose texts must be checked. Most payload paths are judged by their names alone."""
    if asked.error:
        yield Left("error", MESSAGE_LIMIT)
        yield last_class()
    if _paths(asked):
        yield Cast("payload", TextField())


def is_checked(asked: Filter) -> bool:
    """Return whether each match must be checked."""
    return any(True for _text in texts_of(asked))


def is_shown(asked: Filter, texts: Iterable[str | None]) -> bool:
    """Return whether a match is visible after redaction, given the texts that ``texts_of`` lists."""
    found = iter(texts)
    if asked.error:
        error, error_class = redact_text(next(found) or ""), next(found) or ""
        if asked.error.lower() not in error.lower() and asked.error.lower() not in error_class.lower():
            return False
    if not (paths := _paths(asked)):
        return True
    payload = foreign_json.read(next(found) or "")
    if isinstance(payload, foreign_json.Unreadable):  # an unreadable payload isn't shown
        return False
    return not any(hides(payload, path) for path in paths)


def shown(asked: Filter, ids: Sequence[str]) -> list[str]:
    """Keep the visible matches, in order. Their texts are read in parts, to bound memory."""
    if not is_checked(asked):
        return list(ids)
    seen: set[str] = set()
    for start in range(0, len(ids), ASKED_FOR):
        for part in _held_together(asked, ids[start : start + ASKED_FOR]):
            rows = _jobs(part).values_list("pk", *texts_of(asked))
            seen.update(job_id for job_id, *texts in rows if is_shown(asked, texts))
    return [job_id for job_id in ids if job_id in seen]


def _held_together(asked: Filter, ids: Sequence[str]) -> Iterator[list[str]]:
    """Split matches so that the texts of each part fit the bound; a single one may exceed it."""
    lengths = dict.fromkeys(ids, MESSAGE_LIMIT)
    if _paths(asked):
        found = _jobs(ids).values_list("pk", Length(Cast("payload", TextField())))
        lengths |= {job_id: MESSAGE_LIMIT + length for job_id, length in found}
    part: list[str] = []
    room = LETTERS_HELD
    for job_id in ids:
        if part and lengths[job_id] > room:
            yield part
            part, room = [], LETTERS_HELD
        part.append(job_id)
        room -= lengths[job_id]
    yield part


def _jobs(ids: Sequence[str]) -> QuerySet[Job]:
    return Job.objects.using(conf.get("DATABASE")).filter(pk__in=ids)


def _paths(asked: Filter) -> list[list[str]]:
    """List the paths where neighbouring values decide whether a value is a secret."""
    paths = [path.split(".") for path, _value in asked.payload]
    return [path for path in paths if "value" in path or any(map(is_place, path))]
