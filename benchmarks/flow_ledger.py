"""What the ledger of a run under limits proves: how many jobs ran at once, and how much of the limits was used.

The ledger is a file outside the database. Handlers append a line when they begin and one when they end, and whoever
kills a process notes the moment. So no statement of the queue is trusted.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple


class Run(NamedTuple):
    """One run of a job, as far as the ledger proves it. A killed one ended when its process was killed."""

    job: str
    fence: int
    queue: str
    key: str
    began: float
    ended: float
    was_killed: bool


def runs(path: Path, kills: Mapping[int, float]) -> list[Run]:
    """Read the runs. Of one that neither ended nor was killed, nothing but its beginning is proved."""
    begun: dict[tuple[str, int], tuple[str, str, float, int]] = {}
    found = []
    for line in path.read_text(encoding="ascii").splitlines():
        sign, job, fence, pid, moment, queue, key = line.split()
        if sign == "+":
            begun[job, int(fence)] = (queue, key, float(moment), int(pid))
        elif (one := begun.pop((job, int(fence)), None)) is not None:
            found.append(Run(job, int(fence), *one[:3], float(moment), was_killed=False))
    for (job, number), (queue, key, began, process) in begun.items():
        ended = max(began, kills.get(process, began))
        found.append(Run(job, number, queue, key, began, ended, was_killed=process in kills))
    return found


def moments_over(found: Iterable[Run], limits: Mapping[str, int]) -> int:
    """Count the moments at which more jobs began to run than the limit of their queue, or of their key, allows."""
    over = 0
    for (queue, _key), several in _by_account(found).items():
        steps = sorted([(one.began, 1) for one in several] + [(one.ended, -1) for one in several])
        running = 0
        for _moment, step in steps:
            running += step
            over += step > 0 and running > limits[queue]
    return over


def busy(found: Iterable[Run], queue: str, span: tuple[float, float]) -> float:
    """Return the slot-seconds within a span in which jobs of a queue ran."""
    began, ended = span
    parts = (min(one.ended, ended) - max(one.began, began) for one in found if one.queue == queue)
    return sum(max(0.0, part) for part in parts)


def held_by_dead(found: Iterable[Run], returns: Mapping[tuple[str, int], float]) -> dict[str, list[float]]:
    """Return by queue how long the slots of killed jobs stayed taken, from the moments at which claims were ended."""
    held: dict[str, list[float]] = defaultdict(list)
    for one in found:
        if one.was_killed and (one.job, one.fence) in returns:
            held[one.queue].append(max(0.0, returns[one.job, one.fence] - one.ended))
    return held


def most_in_a_window(starts: Iterable[float], per: float) -> int:
    """Return the most starts in any window of a length, at whatever offset."""
    ordered, first, most = sorted(starts), 0, 0
    for place, moment in enumerate(ordered):
        while moment - ordered[first] >= per:
            first += 1
        most = max(most, place - first + 1)
    return most


def _by_account(found: Iterable[Run]) -> dict[tuple[str, str], list[Run]]:
    accounts: dict[tuple[str, str], list[Run]] = defaultdict(list)
    for one in found:
        accounts[one.queue, one.key].append(one)
    return accounts
