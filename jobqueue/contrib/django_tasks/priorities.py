"""The priorities of tasks, from -100 to 100, as those of jobs, from 10 to 1."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

USUAL = 5
MOST_ABOVE, MOST_BELOW = 4, 5
_ABOVE, _BELOW = 100 // MOST_ABOVE, 100 // MOST_BELOW


def band(priority: int) -> int:
    """Return the priority of a job for that of a task. A better task never gets a worse job.

    0 is 5. Each 25 priorities above it, and each 20 below it, share one.
    """
    if priority > 0:
        return USUAL - 1 - (priority - 1) // _ABOVE
    return USUAL + (-priority + _BELOW - 1) // _BELOW


def levels(priorities: Iterable[int]) -> Mapping[int, int]:
    """Return a priority of its own for each of the given priorities, so that their order is exact. 0 is always one."""
    above = sorted(one for one in set(priorities) if one > 0)
    below = sorted((one for one in set(priorities) if one < 0), reverse=True)
    return {
        0: USUAL,
        **{one: USUAL - 1 - place for place, one in enumerate(above)},
        **{one: USUAL + 1 + place for place, one in enumerate(below)},
    }
