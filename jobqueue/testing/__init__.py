"""Tools for tests of code that uses the queue, with pytest or ``TestCase``, and the contract suite for backends.

Importing this package imports nothing of pytest. ``jobqueue.testing.contract`` does.
"""

from __future__ import annotations

from jobqueue.testing.attempts import AttemptReport
from jobqueue.testing.clock import VirtualClock
from jobqueue.testing.due_jobs import drain
from jobqueue.testing.enqueued import assert_enqueued, assert_not_enqueued, enqueued_jobs
from jobqueue.testing.idempotence import assert_idempotent
from jobqueue.testing.inline import run_inline
from jobqueue.testing.moments import QueueClock, virtual_time
from jobqueue.testing.single_attempt import perform

__all__ = [
    "AttemptReport",
    "QueueClock",
    "VirtualClock",
    "assert_enqueued",
    "assert_idempotent",
    "assert_not_enqueued",
    "drain",
    "enqueued_jobs",
    "perform",
    "run_inline",
    "virtual_time",
]
