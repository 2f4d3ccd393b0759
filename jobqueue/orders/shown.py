"""What is not shown cannot be found: a match does not count where it is part of a secret, in a list or in an order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from django.db.models import QuerySet, TextField
from django.db.models.functions import Cast, Left, Length

from jobqueue import conf, foreign_json
from jobqueue.models import Job
from jobqueue.policy.redaction import hides, redact_text
from jobqueue.records import Filter, is_place
from jobqueue.records.outcome import MESSAGE_LIMIT

#: So many letters of errors and payloads are held at a time.
LETTERS_HELD = 4_000_000
#: For many more ids at a time a planner that knows nothing of the table would rather read all of it.
ASKED_FOR = 100


def texts_of(asked: Filter) -> Iterator[Any]:
    """Name the texts in which a match must not be a secret's. Most paths are refused or let go by their names alone."""
    if asked.error:
        yield Left("error", MESSAGE_LIMIT)
    if _paths(asked):
        yield Cast("payload", TextField())


def is_checked(asked: Filter) -> bool:
    """Say whether each match is looked at by itself."""
    return any(True for _text in texts_of(asked))


def is_shown(asked: Filter, texts: Iterable[str | None]) -> bool:
    """Say whether a match is one that can be seen, by the texts that ``texts_of`` names."""
    found = iter(texts)
    if asked.error and asked.error.lower() not in redact_text(next(found) or "").lower():
        return False
    if not (paths := _paths(asked)):
        return True
    payload = foreign_json.read(next(found) or "")
    if isinstance(payload, foreign_json.Unreadable):  # what is not read is not shown either
        return False
    return not any(hides(payload, path) for path in paths)


def shown(asked: Filter, ids: Sequence[str]) -> list[str]:
    """Leave those of some matches that can be seen, in their order; not all of their texts are held at once."""
    if not is_checked(asked):
        return list(ids)
    seen: set[str] = set()
    for start in range(0, len(ids), ASKED_FOR):
        for part in _held_together(asked, ids[start : start + ASKED_FOR]):
            rows = _jobs(part).values_list("pk", *texts_of(asked))
            seen.update(job_id for job_id, *texts in rows if is_shown(asked, texts))
    return [job_id for job_id in ids if job_id in seen]


def _held_together(asked: Filter, ids: Sequence[str]) -> Iterator[list[str]]:
    """Part some matches so that their texts are no longer than may be held at a time; one alone may be."""
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
    """List the paths on which it depends on their neighbours whether a value is a secret."""
    paths = [path.split(".") for path, _value in asked.payload]
    return [path for path in paths if "value" in path or any(map(is_place, path))]
