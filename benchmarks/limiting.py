"""The price of limits: cycles that settle and claim fifty jobs, with and without limits, among few and many jobs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from statistics import median

from django.db import connections

from benchmarks import timing
from benchmarks.raw import Crowd
from benchmarks.report import Figure
from benchmarks.site import REPETITIONS, Site
from jobqueue.policy.settling import completed
from jobqueue.records import Claim, ClaimRequest, Limit, LimitKind, Scope

OWNER = "bench:1:boot"
TYPE = "resize_image"
SLOTS = 50
FLAT = 2.0
#: Of the cycles per second without limits.
LEAST_SHARE = 0.5
_FULL = '{"account":"full"}'


def _limit(number: int, *, per: float = 0.0, key: str = "") -> Limit:
    return Limit(Scope.TYPE, TYPE, LimitKind.RATE if per else LimitKind.CONCURRENCY, number, per, key)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Limits, the keys of the due jobs, and how many jobs of a key that is used up stand before them."""

    name: str
    limits: tuple[Limit, ...]
    keys: int = 0
    behind: int = 0


def claims_under_limits(site: Site) -> Iterator[Figure]:
    """Settle and claim 50 jobs under limits, beside the same without, and behind 1,000,000 of a full key."""
    many = site.size(1_000_000, 50_000)
    cases = [
        Case(name="50 at once", limits=(_limit(SLOTS),)),
        Case(name="a rate", limits=(_limit(1_000_000, per=1.0),)),
        Case(name="1 at once of each of 100 keys", limits=(_limit(1, key="account"),), keys=100),
    ]
    for case in cases:
        yield _beside_none(site, case)
    key = _limit(1, key="account")
    few = 0.0
    for count in (1_000, many):
        case = Case(name=f"behind {count:,} of a full key", limits=(key,), keys=1, behind=count)
        figure, took = _behind(site, case, few)
        few = few or took
        yield figure


def _beside_none(site: Site, case: Case) -> Figure:
    _prepare(site, case)
    under, free = _Cycles(site, case.limits), _Cycles(site, ())
    times = site.size(60, 10)

    def of(cycles: _Cycles) -> Callable[[], float]:
        return lambda: median(timing.seconds(cycles.turn) for _ in range(times))

    mine, bare = timing.interleaved(REPETITIONS, _alone(of(under), under), _alone(of(free), free))
    share = timing.share(bare, mine) if bare else None
    return Figure(
        database=site.place.vendor,
        measure=f"settle and claim {SLOTS} under {case.name}",
        ours=timing.milliseconds(mine),
        raw=timing.milliseconds(bare) if bare else None,
        share=share,
        goal=f"≥ {LEAST_SHARE:.0%} of the speed without limits",
        reached=share is not None and share >= LEAST_SHARE,
    )


def _alone(measure: Callable[[], float], cycles: _Cycles) -> Callable[[], float]:
    """Give back what a measurement holds, so that the other one finds all slots free."""

    def run() -> float:
        try:
            return measure()
        finally:
            cycles.end()

    return run


def _behind(site: Site, case: Case, few: float) -> tuple[Figure, float]:
    _prepare(site, case)
    cycles = _Cycles(site, case.limits, limit=1)
    cycles.turn()
    times = [timing.seconds(cycles.turn) for _ in range(site.size(60, 10))]
    took = min(times)
    ratio = took / few if few else 1.0
    result = timing.milliseconds(times)
    figure = Figure(
        database=site.place.vendor,
        measure=f"settle and claim 1 {case.name}",
        ours=replace(result, numbers={**result.numbers, "ratio": ratio}),
        goal=f"{ratio:.1f} times 1,000 rows, ≤ {FLAT:g}",
        reached=ratio <= FLAT,
    )
    cycles.end()
    return figure, took


class _Cycles:
    """Cycles of one worker."""

    def __init__(self, site: Site, limits: tuple[Limit, ...], limit: int = SLOTS) -> None:
        self._site = site
        self._request = ClaimRequest(limit=limit, types=frozenset({TYPE}), limits=limits)
        self._held: Sequence[Claim] = ()

    def turn(self) -> None:
        done = [completed(one, "null") for one in self._held]
        cycle = self._site.backend.cycle(OWNER, done, self._request)
        if len(cycle.claims) != self._request.limit and cycle.next_due != timedelta(0):
            raise RuntimeError(f"{len(cycle.claims)} of {self._request.limit} jobs were claimed")
        self._held = cycle.claims

    def end(self) -> None:
        self._site.backend.cycle(OWNER, [completed(one, "null") for one in self._held])
        self._held = ()


def _prepare(site: Site, case: Case) -> None:
    site.fresh()
    if case.behind:
        site.raw.fill(Crowd(count=case.behind, type=TYPE, first_due=-2 * 86_400.0))
        _run(site, f"UPDATE job_queue SET concurrency_key = '{_FULL}'")
        taken = site.backend.cycle("other:1:boot", (), ClaimRequest(limit=1, types=frozenset({TYPE})))
        if len(taken.claims) != 1:
            raise RuntimeError("no job holds the full key")
    site.raw.fill(Crowd(count=site.size(20_000, 4_000), type=TYPE), skip=case.behind)
    if case.keys:
        key = (
            f"'{{\"account\":\"' || (abs(hashtext(id)) % {case.keys}) || '\"}}'"
            if site.place.vendor == "postgres"
            else f"'{{\"account\":\"' || (rowid % {case.keys}) || '\"}}'"
        )
        _run(site, f"UPDATE job_queue SET concurrency_key = {key} WHERE concurrency_key IS NULL")
    site.raw.settle_down()
    site.reconnect()


def _run(site: Site, statement: str) -> None:
    with connections["default"].cursor() as cursor:
        cursor.execute(statement)
