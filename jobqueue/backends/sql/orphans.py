"""Orphans: history rows of jobs that another program has deleted."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from random import SystemRandom

from django.db.models import Max, OuterRef, QuerySet, Subquery

from jobqueue.backends.base import Backend
from jobqueue.backends.sql.backend import SqlBackend
from jobqueue.models import Attempt, Job

logger = logging.getLogger("jobqueue")

#: How many attempts are read at a time. That takes some ten milliseconds, however large the tables are.
PAGE = 1_000
#: How many are deleted in one transaction, which holds SQLite's only write lock.
BATCH = 250

_dice = SystemRandom()


class Orphans:
    """Reads the history page by page, again and again, and deletes attempts without a job.

    The first page is chosen at random, so that short-lived workers don't all read the same pages.
    """

    def __init__(self, backend: Backend) -> None:
        self._session = backend.session if isinstance(backend, SqlBackend) else None  # not for memory
        self._after: int | None = None

    def prune(self) -> int:
        """Read the next page, and return how many attempts were deleted."""
        if self._session is None:
            return 0
        with self._session.reporting():
            found = list(_without_job(self._attempts.filter(pk__in=self._next_page())).values_list("pk", flat=True))
        deleted = sum(self._delete(found[place : place + BATCH]) for place in range(0, len(found), BATCH))
        if deleted:
            logger.info("Deleted %d attempts whose jobs another program has deleted", deleted)
        return deleted

    @property
    def _attempts(self) -> QuerySet[Attempt]:
        assert self._session is not None  # noqa: S101 - for the type checker
        return self._session.rows(Attempt)

    def _next_page(self) -> list[int]:
        """Return the ids of the next page. The page after the last one is the first one."""
        if self._after is None:
            self._after = _dice.randint(0, max(0, self._attempts.aggregate(last=Max("pk"))["last"] or 0))
        ids = self._attempts.order_by("pk").values_list("pk", flat=True)
        page = list(ids.filter(pk__gt=self._after)[:PAGE])
        if len(page) < PAGE:
            page += ids.filter(pk__lte=self._after)[: PAGE - len(page)]
        self._after = page[-1] if page else 0
        return page

    def _delete(self, ids: Sequence[int]) -> int:
        """Delete attempts that still have no job, except those that another worker is deleting."""
        assert self._session is not None  # noqa: S101 - for the type checker

        def work() -> int:
            rows = self._attempts.filter(pk__in=ids).order_by("pk").select_for_update(skip_locked=True)
            free = list(rows.values_list("pk", flat=True))
            return _without_job(self._attempts.filter(pk__in=free)).delete()[0]

        return self._session.transact(work)


def _without_job(attempts: QuerySet[Attempt]) -> QuerySet[Attempt]:
    """Return the attempts without a job. With EXISTS instead of a subquery, Postgres would join them with all jobs."""
    job = Subquery(Job.objects.filter(pk=OuterRef("job_id")).values("pk")[:1])
    return attempts.alias(found=job).filter(found=None)
