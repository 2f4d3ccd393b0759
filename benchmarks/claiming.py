"""What a claim costs however many jobs wait, and whoever stands in its way; on tables never analysed, and after."""

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
KNOWN = frozenset({"resize_image", "rare"})
SMALL = 1_000
PAUSED = "paused"

#: How many claims are timed before as many jobs as they took are put at the queue's end.
_BLOCK = 10
#: How many seconds of claims are enough, where a claim costs far too much.
_BUDGET = 5.0
_DAY = 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What waits: the jobs a worker may run, and a crowd that it may not."""

    name: str
    due: Crowd
    crowd: Crowd | None = None
    goal: float | None = 2.0
    raw: bool = True
    """Whether the bare SQL, which knows neither types nor pauses, would claim the same."""


def cases(many: int) -> list[Case]:
    """List the cases; the first is what the others are compared with."""
    depths = [Case(name=f"{count:,} due", due=Crowd(count=count)) for count in (SMALL, many // 10, many)]
    few = Crowd(count=20_000)
    before = -2 * _DAY
    return [
        *depths,
        Case(
            name=f"{many:,} future at priority 1, 20,000 due",
            due=few,
            crowd=Crowd(count=many, priority=1, first_due=_DAY),
        ),
        Case(
            name=f"5,000 of a rare type behind {many:,} unknown",
            due=replace(few, count=5_000, type="rare"),
            crowd=Crowd(count=many, type="unknown", first_due=before),
            goal=None,
            raw=False,
        ),
        Case(
            name=f"20,000 due behind {many:,} in a paused queue",
            due=few,
            crowd=Crowd(count=many, queue=PAUSED, first_due=before),
            goal=None,
            raw=False,
        ),
    ]


def claims(site: Site) -> Iterator[Figure]:
    """Time committed claims of one and of fifty in every case, and compare with a thousand rows."""
    small: dict[tuple[int, bool], float] = {}
    for case in cases(site.size(1_000_000, 50_000)):
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
    for crowd in (case.crowd, case.due):
        if crowd:
            site.raw.fill(crowd)
    site.backend.pause(Scope.QUEUE, PAUSED)
    site.raw.settle_down()
    site.reconnect()


def _measured(site: Site, case: Case, limit: int, analysed: bool, small: dict[tuple[int, bool], float]) -> Figure:
    request = ClaimRequest(limit=limit, types=KNOWN)
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
        goal=f"{ratio:.1f} times {SMALL:,} rows" + (f", ≤ {case.goal:g}" if case.goal else ""),
        reached=ratio <= case.goal if case.goal else None,
    )


def _durations(site: Site, case: Case, limit: int, blocks: int, claim: Callable[[], int]) -> list[float]:
    """Time blocks of claims, each from a queue of the case's full depth."""
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
    """Claim until the limit is reached, as often as the backend says that it is worth asking at once."""
    claimed = 0
    while True:
        turn = site.backend.cycle(OWNER, (), replace(request, limit=request.limit - claimed))
        claimed += len(turn.claims)
        if claimed == request.limit:
            return claimed
        if turn.next_due != timedelta(0):
            raise RuntimeError(f"{claimed} of {request.limit} jobs were claimed")
