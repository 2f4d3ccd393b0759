"""Walks through queued jobs, page by page: all of them, or some of each queue and type."""

from __future__ import annotations

from collections.abc import Iterator

from jobqueue.backends.base import Backend
from jobqueue.records.outstanding import Behind, QueuedJob

#: Payloads may be large, so few are read at a time.
PAGE = 100


def all_queued(backend: Backend) -> Iterator[list[QueuedJob]]:
    """Yield all queued jobs in pages. Jobs that are enqueued or moved meanwhile may be left out."""
    place: Behind | None = None
    seen: set[str] = set()
    while page := backend.outstanding.queued(PAGE, place):
        if seen.issuperset(one.id for one in page):  # a place that the database can't compare leads nowhere
            return
        yield page
        place, seen = page[-1].place, {one.id for one in page}


def some_of_each(backend: Backend, each: int, most: int) -> Iterator[list[QueuedJob]]:
    """Yield the first jobs of each queue and type, ``each`` or some more of them, until there are ``most``."""
    place: Behind | None = None
    seen: set[str] = set()
    number = 0
    while number < most and (page := backend.outstanding.queued(each, place)):
        if seen.issuperset(one.id for one in page):
            return
        yield page
        number, seen = number + len(page), {one.id for one in page}
        is_of_one_kind = (page[0].queue, page[0].type) == (page[-1].queue, page[-1].type)
        place = Behind(page[0].queue, page[0].type) if is_of_one_kind else page[-1].place
