"""The meaning of a search word without a name: an id, a key, a type or a tenant, whichever exists."""

from __future__ import annotations

from jobqueue.admin.search import job_id
from jobqueue.backends import current
from jobqueue.handlers.registry import registry
from jobqueue.ids import begins_ulid
from jobqueue.records import Filter

#: Nearly all ids have a shorter beginning in common.
SHORTEST_BEGINNING = 4


def meant(word: str) -> Filter:
    """Return the filter for a word: an id or its beginning, an idempotency key, a type or a tenant."""
    if found := named(word):
        return found
    jobs = current().jobs
    start = job_id.as_beginning(word.upper())
    if len(start) >= SHORTEST_BEGINNING and begins_ulid(start) and jobs.search(Filter(id_prefix=start), 1).found:
        return Filter(id_prefix=start)
    as_type = Filter(types=frozenset({word}))
    return as_type if word in registry.names or jobs.search(as_type, 1).found else Filter(tenant=word)


def named(word: str) -> Filter | None:
    """Return the filter for a complete id or idempotency key, if a job has it."""
    possible = (Filter(ids=frozenset({word})), Filter(idempotency_key=word))
    return next((one for one in possible if current().jobs.count(one, 1)), None)
