"""What this release's code says about job types, as far as an evaluation needs it."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

from jobqueue.handlers.registry import registry


def critical_types() -> frozenset[str]:
    """Return the types of which each dead letter is an alert, with their former names."""
    return frozenset(name for kind in registry if kind.critical for name in (kind.name, *kind.aliases))


def own_limits(names: Iterable[str]) -> dict[str, timedelta]:
    """Return the time limits that types set themselves."""
    kinds = {name: registry.get(name) for name in names if name in registry.names}
    return {name: kind.timeout for name, kind in kinds.items() if kind.options.timeout is not None}
