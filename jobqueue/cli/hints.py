"""Hints about unknown names. A name may be misspelt, or belong to another release or program."""

from __future__ import annotations

from collections.abc import Iterator

from jobqueue.backends import current
from jobqueue.handlers.registry import registry
from jobqueue.policy.nearest import did_you_mean
from jobqueue.records import Filter
from jobqueue.worker.start import known_queues


def about_type(name: str) -> Iterator[str]:
    """Yield a hint if no handler has this name."""
    if name not in registry.names:
        advice = did_you_mean(name, registry.names, "Is its app in INSTALLED_APPS?")
        yield f"There is no handler named {name!r}. {advice}"


def about_queue(name: str) -> Iterator[str]:
    """Yield a hint if neither a handler nor a job uses this queue."""
    known = known_queues(current())
    if name not in known:
        yield f"No handler uses the queue {name!r}, and it holds no jobs. {did_you_mean(name, known)}"


def about_filter(wanted: Filter) -> Iterator[str]:
    """Yield a hint for each unknown name in a filter that matches no jobs."""
    for name in sorted(wanted.types):
        yield from about_type(name)
    for name in sorted(wanted.queues):
        yield from about_queue(name)
