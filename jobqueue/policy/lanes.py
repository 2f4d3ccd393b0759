"""Which jobs of a lane may start: values in, a decision out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from jobqueue.policy.limits.limits import Candidate, is_storable
from jobqueue.records.lane import Hold, LaneHold, LaneRecord

#: The name of the lane of jobs without a value for the key, and of the only lane of a queue that has no key.
WHOLE_QUEUE = "*"
#: The longest name of a lane.
LONGEST_NAME = 255


class LaneJob(NamedTuple):
    """A job of a lane. Jobs of one lane compare by their place in it."""

    position: int
    id: str
    queue: str
    lane: str
    type: str
    keys: str | None
    priority: int
    scheduled_at: Any
    parallel: bool

    @property
    def place(self) -> tuple[int, str]:
        """Return the place in the lane."""
        return (self.position, self.id)


def lane_of(ordered: bool | str, payload: object, tenant: str | None) -> str:
    """Return the lane of a job that another program stored, by its tenant or a field of its payload."""
    if isinstance(ordered, bool):
        return WHOLE_QUEUE
    value = tenant if ordered == "tenant" else payload.get(ordered) if isinstance(payload, dict) else None
    if isinstance(value, bool):
        value = str(value).lower()
    if isinstance(value, int) and value.bit_length() > 500:  # longer texts of numbers can't be written
        return WHOLE_QUEUE
    text = str(value) if isinstance(value, (str, int, float)) else ""
    return text if text and len(text) <= LONGEST_NAME and is_storable(text) else WHOLE_QUEUE


@dataclass
class Lane:
    """What was read about a lane.

    ``due`` has its first due jobs in order. ``running`` has a running barrier if there is one, or else at least one of
    the jobs that run. Only in a strict lane, ``held`` has the first of the jobs that wait, and
    the first of the dead letters.
    """

    due: list[LaneJob] = field(default_factory=list)
    running: list[LaneJob] = field(default_factory=list)
    held: list[tuple[Hold, LaneJob]] = field(default_factory=list)

    def add(self, hold: Hold, job: LaneJob) -> None:
        """Take a job in."""
        match hold:
            case Hold.IS_DUE:
                self.due.append(job)
            case Hold.RUNS:
                self.running.append(job)
            case _:
                self.held.append((hold, job))

    def may_start(self) -> list[LaneJob]:
        """Return the first due jobs that may start now, in order.

        A job that is not parallel is a barrier: it starts if nothing of its lane runs and no due job is before it, and
        while it runs, nothing starts. In a strict lane, nothing behind a held job starts.
        """
        if not all(one.parallel for one in self.running):
            return []
        stop = min((job.place for _hold, job in self.held), default=None)
        found: list[LaneJob] = []
        for one in self.due:
            if stop is not None and one.place > stop:
                break
            if not one.parallel:
                return found if found or self.running else [one]
            found.append(one)
        return found

    def hold_of(self, place: tuple[int, str], parallel: bool) -> LaneHold | None:
        """Return what holds a due job at a place."""
        held = min(((job.place, hold, job) for hold, job in self.held if job.place < place), default=None)
        if held is not None:
            return LaneHold(held[2].id, held[1], held[2].scheduled_at if held[1] is Hold.WAITS else None)
        running = sorted(self.running, key=lambda job: (job.parallel, job.place))
        if running and not (parallel and running[0].parallel):
            return LaneHold(running[0].id, Hold.RUNS)
        before = (job for job in self.due if job.place < place and not (parallel and job.parallel))
        first = next(before, None)
        return None if first is None else LaneHold(first.id, Hold.IS_DUE)


def in_places(jobs: Sequence[LaneJob]) -> list[tuple[Candidate, Candidate]]:
    """Return jobs of one lane as candidates, each with the one whose place in the order of claims it takes.

    The first job takes the first place that any of them has, and so on. So none comes before an earlier one of its
    lane, whatever its priority.
    """
    found = [Candidate(one.priority, one.scheduled_at, one.id, one.queue, one.type, one.keys) for one in jobs]
    return list(zip(found, sorted(found), strict=True))


def record_of(
    name: tuple[str, str],
    lane: Lane,
    depth: int,
    running: Sequence[str],
    moved: Callable[[LaneHold], LaneHold] = lambda hold: hold,
) -> LaneRecord:
    """Return a lane as others see it, with the ids of running jobs. ``moved`` converts the moment of a hold."""
    held = [job for hold, job in lane.held if hold is Hold.WAITS]
    queued = sorted([*lane.due[:1], *held], key=lambda job: job.place)
    first = next((one for one in lane.due if lane.hold_of(one.place, one.parallel)), None)
    hold = None if first is None else lane.hold_of(first.place, first.parallel)
    if first is None and lane.held:
        hold = lane.hold_of((1 << 64, ""), parallel=True)
    head = queued[0].id if queued else None
    return LaneRecord(*name, depth, head, tuple(sorted(running)), hold and moved(hold))
