"""The counters, of which there is one for each queue and type up to a limit. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Set
from datetime import timedelta

from jobqueue.policy.stretches import ALL, Name, together
from jobqueue.records import MOST_GROUPS, Tally

#: A counter that nothing was added to for this long is deleted, so that types that are gone make room for others.
FORGOTTEN_AFTER = timedelta(days=30)


def placed(tallies: Iterable[Tally], known: Set[Name]) -> dict[Name, Tally]:
    """Return what to add to each counter, some of which may not exist yet.

    A type without room counts with the other ones of its queue, and a queue without room with all others.
    """
    taken, found = set(known), dict[Name, list[Tally]]()
    for one in sorted(tallies, key=lambda one: (one.queue, one.type)):
        name = next(name for name in ((one.queue, one.type), (one.queue, ""), ALL) if _has_room(name, taken))
        taken.add(name)
        found.setdefault(name, []).append(one)
    return {name: together(several, name) for name, several in found.items()}


def _has_room(name: Name, taken: Set[Name]) -> bool:
    if name == ALL or name in taken:
        return True
    alike = sum(bool(kind) is bool(name[1]) for place, kind in taken if (place, kind) != ALL)
    return alike < MOST_GROUPS
