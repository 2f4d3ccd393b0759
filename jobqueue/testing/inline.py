"""Jobs that run in the process that enqueues them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connections, transaction

from jobqueue.api import watch
from jobqueue.backends.base import Backend
from jobqueue.testing.attempts import AttemptReport
from jobqueue.testing.database import database_of
from jobqueue.testing.due_jobs import MOST, Drain, Errors


class Inline:
    """Runs the jobs that are due after each enqueue, in the thread that enqueued.

    A job that is enqueued while another one runs, runs after it.
    """

    def __init__(self, *, immediate: bool = False, errors: Errors = "raise", limit: int = MOST) -> None:
        self.reports: list[AttemptReport] = []
        self._immediate = immediate
        self._errors = errors
        self._limit = limit
        self._thread = threading.local()

    def __call__(self, backend: Backend) -> None:
        """Run what is due, at once or after the caller's commit."""
        alias = database_of(backend)
        if self._immediate or alias is None or is_committed(alias):
            self._run(backend)
        else:
            transaction.on_commit(lambda: self._run(backend), using=alias)

    def _run(self, backend: Backend) -> None:
        if getattr(self._thread, "runs", False):
            return
        self._thread.runs = True
        drain = Drain(backend, errors=self._errors, retries=False, limit=self._limit)
        try:
            drain.run()
        finally:
            self._thread.runs = False
            self.reports += drain.reports


#: The values of ``JOBQUEUE["TESTING"]`` that run jobs.
AT_COMMIT = Inline()
AT_ENQUEUE = Inline(immediate=True)


@contextmanager
def run_inline(
    *, immediate: bool = False, errors: Errors = "raise", limit: int = MOST
) -> Iterator[list[AttemptReport]]:
    """Run jobs in the process that enqueues them, and yield the list of their attempts.

    Jobs run when the transaction commits in which they were enqueued, after ``transaction.on_commit()`` callbacks that
    came before them. The transaction that a ``TestCase`` opens around a test never commits: it doesn't count, so a job
    that is enqueued outside of ``atomic()`` runs at once. One that is enqueued inside of ``atomic()`` runs if the test
    executes the callbacks, with ``captureOnCommitCallbacks(execute=True)`` or pytest-django's
    ``django_capture_on_commit_callbacks(execute=True)``. With ``immediate``, ``enqueue`` itself runs the job.
    """
    inline = Inline(immediate=immediate, errors=errors, limit=limit)
    with watch.used(inline):
        yield inline.reports


def is_committed(alias: str) -> bool:
    """Return whether this thread is outside of transactions. Those that a ``TestCase`` opened don't count."""
    connection = connections[alias]
    return not connection.in_atomic_block or all(
        getattr(block, "_from_testcase", False) for block in connection.atomic_blocks
    )
