"""The public API: ``@job`` makes handlers, and ``enqueue`` and ``get`` work by name and id."""

from __future__ import annotations

from jobqueue.api.decorator import MakesHandler, job
from jobqueue.api.functions import (
    aenqueue,
    aenqueue_many,
    aget,
    enqueue,
    enqueue_many,
    enqueue_on_commit,
    find,
    get,
)

__all__ = [
    "MakesHandler",
    "aenqueue",
    "aenqueue_many",
    "aget",
    "enqueue",
    "enqueue_many",
    "enqueue_on_commit",
    "find",
    "get",
    "job",
]
