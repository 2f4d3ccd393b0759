"""The cost of a claim by number of queued jobs and by obstacles, on tables with and without statistics."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from statistics import median

from benchmarks import timing
from benchmarks.raw import Crowd
from benchmarks.report import Figure
from benchmarks.site import REPETITIONS, Site
from jobqueue.records import ClaimRequest, Scope

OWNER = "bench:1:boot"
LIMITS = (1, 50)
USUAL = tuple(f"type_{number}" for number in range(9))
RARE = "rare"
SMALL = 1_000
PAUSED = "paused"
#: How many times what it costs among a thousand rows a claim may cost among a million.
FLAT = 2.0

#: How many claims are timed before as many jobs as they took are put at the queue's end.
_BLOCK = 10
#: How many seconds of claims are enough, where a claim costs far too much.
_BUDGET = 5.0
_DAY = 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """The contents of the table: due jobs, and crowds beside them."""

    name: str
    due: Crowd
    crowds: tuple[Crowd, ...] = ()
    types: frozenset[str] = frozenset({"resize_image"})
    raw: bool = True
    """Whether the bare SQL, which knows neither types nor pauses, would claim the same."""


def deep(count: int) -> Case:
    """Only due jobs."""
    return Case(name=f"{count:,} due", due=Crowd(count=count))


def future(count: int) -> Case:
    """Jobs for tomorrow with a better priority."""
    crowd = Crowd(count=count, priority=1, first_due=_DAY)
    return Case(name=f"{count:,} future at priority 1", due=_FEW, crowds=(crowd,))


def ended(count: int) -> Case:
    """Completed jobs."""
    return Case(name=f"{count:,} completed", due=_FEW, crowds=(Crowd(count=count, status="completed"),))


def rare(count: int) -> Case:
    """A worker of the tenth type, whose jobs come after those of nine others."""
    due = replace(_FEW, type=RARE)
    return Case(
        name=f"one type behind {count:,} of nine", due=due, crowds=_of_nine(count), types=frozenset({RARE}), raw=False
    )


def every(count: int) -> Case:
    """A worker of all ten types."""
    due, types = replace(_FEW, type=RARE), frozenset({*USUAL, RARE})
    return Case(name=f"all ten types, {count:,} of nine", due=due, crowds=_of_nine(count), types=types)


def paused(count: int) -> Case:
    """Jobs of a paused queue, before those of another."""
    crowd = Crowd(count=count, queue=PAUSED, first_due=-2 * _DAY)
    return Case(name=f"behind {count:,} in a paused queue", due=_FEW, crowds=(crowd,), raw=False)


def _of_nine(count: int) -> tuple[Crowd, ...]:
    return tuple(Crowd(count=count // len(USUAL), type=one, first_due=-2 * _DAY) for one in USUAL)


_FEW = Crowd(count=5_000)
CASES: tuple[Callable[[int], Case], ...] = (deep, future, ended, rare, every, paused)


def claims(site: Site) -> Iterator[Figure]:
    """Claim 1 and 50 jobs with 1,000 to 1,000,000 jobs in the table, due or in the way."""
    many = site.size(1_000_000, 50_000)
    for case in CASES:
        small: dict[tuple[int, bool], float] = {}
        for count in (SMALL, many // 10, many) if case is deep else (SMALL, many):
            yield from _of_case(site, case(count), small)


def _of_case(site: Site, case: Case, small: dict[tuple[int, bool], float]) -> Iterator[Figure]:
    """Time committed claims without and with statistics. The first of a case's sizes is the small one."""
    _prepare(site, case)
    for analysed in (False, True):
        if analysed:
            site.raw.analyse()
            site.reconnect()
        for limit in LIMITS:
            yield _measured(site, case, limit, analysed, small)


def _prepare(site: Site, case: Case) -> None:
    site.fresh()
    site.raw.leave_unanalysed()
    for crowd in (*case.crowds, case.due):
        site.raw.fill(crowd)
    site.backend.operator.pause(Scope.QUEUE, PAUSED)
    site.raw.settle_down()
    site.reconnect()


def _measured(site: Site, case: Case, limit: int, analysed: bool, small: dict[tuple[int, bool], float]) -> Figure:
    request = ClaimRequest(limit=limit, types=case.types)
    times = site.size(10 if limit == 1 else 3, 2)

    quickest: list[float] = []

    def ours() -> float:
        durations = _durations(site, case, limit, times, lambda: _claim(site, request))
        quickest.append(min(durations))
        return median(durations)

    def raw() -> float:
        return median(_durations(site, case, limit, times, lambda: len(site.raw.cycle(OWNER, (), limit))))

    mine, bare = timing.interleaved(REPETITIONS, ours, raw if case.raw else None)
    result = timing.milliseconds(mine)
    # The two were not taken in the same minute. The quickest claim is the least disturbed, and whatever grows with the
    # table, it pays like any other.
    ratio = min(quickest) / small.setdefault((limit, analysed), min(quickest))
    return Figure(
        database=site.place.vendor,
        measure=f"claim {limit}: {case.name}{', analysed' if analysed else ''}",
        ours=replace(result, numbers={**result.numbers, "ratio": ratio}),
        raw=timing.milliseconds(bare) if bare else None,
        share=timing.share(bare, mine) if bare else None,
        goal=f"{ratio:.1f} times {SMALL:,} rows, ≤ {FLAT:g}",
        reached=ratio <= FLAT,
    )


def _durations(site: Site, case: Case, limit: int, blocks: int, claim: Callable[[], int]) -> list[float]:
    """Time blocks of claims, each from a queue with the case's full depth."""
    durations: list[float] = []
    claim()  # plans, and finds out who stands in the way
    taken = limit
    for _ in range(blocks):
        if sum(durations) >= _BUDGET:
            break
        site.raw.fill(replace(case.due, count=taken), skip=case.due.count)
        taken = 0
        while taken < _BLOCK * limit and sum(durations) < _BUDGET:
            durations.append(timing.seconds(claim))
            taken += limit
    site.raw.fill(replace(case.due, count=taken), skip=case.due.count)
    return durations


def _claim(site: Site, request: ClaimRequest) -> int:
    """Claim until the limit is reached, as often as the backend asks for it."""
    claimed = 0
    while True:
        turn = site.backend.cycle(OWNER, (), replace(request, limit=request.limit - claimed))
        claimed += len(turn.claims)
        if claimed == request.limit:
            return claimed
        if turn.next_due != timedelta(0):
            raise RuntimeError(f"{claimed} of {request.limit} jobs were claimed")
