"""What is said of a name that nobody here knows: it may be misspelt, or belong to another release or program."""

from __future__ import annotations

from collections.abc import Iterator

from jobqueue.backends import current
from jobqueue.handlers.registry import registry
from jobqueue.policy.nearest import did_you_mean
from jobqueue.records import Filter
from jobqueue.worker.start import known_queues


def about_type(name: str) -> Iterator[str]:
    """Say that no handler here has the name of a type, if none has."""
    if name not in registry.names:
        advice = did_you_mean(name, registry.names, "Is its app in INSTALLED_APPS?")
        yield f"No handler here has the name {name!r}. {advice}"


def about_queue(name: str) -> Iterator[str]:
    """Say that nothing is known of a queue, if nothing is."""
    known = known_queues(current())
    if name not in known:
        yield f"No handler names the queue {name!r}, and no job is in it. {did_you_mean(name, known)}"


def about_filter(wanted: Filter) -> Iterator[str]:
    """Say which names of a filter that lets nothing through nobody knows."""
    for name in sorted(wanted.types):
        yield from about_type(name)
    for name in sorted(wanted.queues):
        yield from about_queue(name)
