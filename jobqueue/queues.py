"""The options of queues, by name. They are read from ``JOBQUEUE["QUEUES"]`` at the first use, and then kept."""

from __future__ import annotations

from collections.abc import Iterable

from django.core.signals import setting_changed

from jobqueue import conf
from jobqueue.policy import queue_options
from jobqueue.records import QueueOptions

#: How many names are kept. Other programs may make up any number of queues.
_MOST_KEPT = 10_000


class _Kept(dict[str, QueueOptions]):
    """The options that were asked for, so that the next look-up is one access of a dict."""

    def __missing__(self, queue: str) -> QueueOptions:
        if len(self) >= _MOST_KEPT:
            self.clear()
        found = self[queue] = queue_options.options_of(queue, conf.get("QUEUES"))
        return found


_kept = _Kept()


def options_of(queue: str) -> QueueOptions:
    """Return the options of a queue."""
    return _kept[queue]


def are_bounded() -> bool:
    """Return whether any queue has a capacity."""
    return any(entry.get("capacity") is not None for entry in conf.get("QUEUES").values())


def own_orders() -> dict[str, QueueOptions]:
    """Return the options of the entries whose jobs have an order of their own, by their names and patterns."""
    entries = conf.get("QUEUES")
    found = {name: queue_options.options_of(name, {name: entries[name]}) for name in entries}
    return {name: options for name, options in found.items() if options.has_own_order}


def named() -> set[str]:
    """Return the queues that the setting names. Patterns stand for others."""
    return {name for name in conf.get("QUEUES") if "*" not in name}


def capacities(names: Iterable[str]) -> dict[str, int]:
    """Return the capacities of those queues that have one."""
    found = {name: options_of(name).capacity for name in names}
    return {name: capacity for name, capacity in found.items() if capacity is not None}


def _forget(*, setting: str, **_: object) -> None:
    if setting == "JOBQUEUE":
        _kept.clear()


setting_changed.connect(_forget)
