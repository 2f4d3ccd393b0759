"""The price of fair turns, and how long the jobs of small tenants wait beside those of a large one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from statistics import median

from django.db import connections

from benchmarks import timing
from benchmarks.raw import Crowd
from benchmarks.report import Figure
from benchmarks.site import REPETITIONS, Site
from jobqueue.clock import SYSTEM
from jobqueue.ids import new_id
from jobqueue.policy.settling import completed
from jobqueue.records import Claim, ClaimRequest, Draft, Limit, LimitKind, QueueOptions, Scope

OWNER = "bench:1:boot"
TYPE = "resize_image"
#: Slots of a worker whose claims are timed, and of one beside which small tenants wait.
SLOTS, FEW_SLOTS = 50, 8
TENANTS = 1_000
SMALL, JOBS_OF_SMALL = 50, 10
#: Of the cycles per second without turns, and of the waits in an idle system.
LEAST_SHARE, MOST_WAIT = 0.5, 2.0
_FAIR = {"queue_options": {"default": QueueOptions(fair="tenant")}, "entries": ("default",)}
_ONE_EACH = Limit(Scope.TYPE, TYPE, LimitKind.CONCURRENCY, 1, key="account")


@dataclass(frozen=True, slots=True)
class Case:
    """The accounts of the large tenant, each of which is the key of a limit; 0 for no limit."""

    name: str
    accounts: int


def turns(site: Site) -> Iterator[Figure]:
    """Settle and claim jobs of 1,000 tenants with and without turns; and wait beside 100,000 jobs of one tenant."""
    yield _price(site)
    many = site.size(100_000, 20_000)
    for case in (Case("in one key", 0), Case("in 1,000 keys of a limit", 1_000)):
        yield _waits(site, case, many)


def _price(site: Site) -> Figure:
    site.fresh()
    site.raw.fill(Crowd(count=site.size(50_000, 10_000), type=TYPE))
    number = "abs(hashtext(id))" if site.place.vendor == "postgres" else "rowid"
    _run(site, f"UPDATE job_queue SET fair_key = 'tenant ' || ({number} % {TENANTS})")
    site.raw.settle_down()
    site.reconnect()
    fair, free = _Cycles(site, SLOTS, fair=True), _Cycles(site, SLOTS, fair=False)
    times = site.size(60, 10)

    def of(cycles: _Cycles) -> Callable[[], float]:
        def run() -> float:
            try:
                return median(timing.seconds(cycles.turn) for _ in range(times))
            finally:
                cycles.end()

        return run

    mine, bare = timing.interleaved(REPETITIONS, of(fair), of(free))
    share = timing.share(bare, mine)
    return Figure(
        database=site.place.vendor,
        measure=f"settle and claim {SLOTS} in turns of {TENANTS:,} tenants",
        ours=timing.milliseconds(mine),
        raw=timing.milliseconds(bare),
        share=share,
        goal=f"≥ {LEAST_SHARE:.0%} of the speed without turns",
        reached=share is not None and share >= LEAST_SHARE,
    )


def _waits(site: Site, case: Case, many: int) -> Figure:
    """Let a worker run the jobs of small tenants, alone and beside a large one that was there first."""
    limits = (_ONE_EACH,) if case.accounts else ()
    idle = _small_waits(site, limits)
    site.fresh()
    site.raw.fill(Crowd(count=many, type=TYPE))
    key = "NULL"
    if case.accounts:
        number = "abs(hashtext(id))" if site.place.vendor == "postgres" else "rowid"
        key = f"'{{\"account\":\"' || ({number} % {case.accounts}) || '\"}}'"
    _run(site, f"UPDATE job_queue SET fair_key = 'large', concurrency_key = {key}")
    site.raw.settle_down()
    site.reconnect()
    beside = _small_waits(site, limits, is_fresh=False)
    ratio = timing.percentile(beside, 95) / timing.percentile(idle, 95)
    return Figure(
        database=site.place.vendor,
        measure=f"{SMALL} tenants with {JOBS_OF_SMALL} jobs wait beside {many:,} of one {case.name}",
        ours=timing.tail(beside),
        raw=timing.tail(idle),
        share=1 / ratio,
        goal=f"p95 {ratio:.2f} times that without the large one, ≤ {MOST_WAIT:g}; no idle slot",
        reached=ratio <= MOST_WAIT,
    )


def _small_waits(site: Site, limits: tuple[Limit, ...], *, is_fresh: bool = True) -> list[float]:
    """Enqueue the jobs of small tenants. Return how long each waits for its claim."""
    if is_fresh:
        site.fresh()
    cycles = _Cycles(site, FEW_SLOTS, fair=True, limits=limits)
    if not is_fresh:  # the large tenant has been served alone for a while
        for _ in range(20):
            cycles.turn()
    drafts = [
        Draft(
            id=new_id(),
            type=TYPE,
            payload="{}",
            fair_key=f"small {number % SMALL}",
            concurrency_key=f'{{"account":"small {number}"}}',
        )
        for number in range(SMALL * JOBS_OF_SMALL)
    ]
    began = SYSTEM.monotonic()
    site.backend.enqueue(drafts)
    waits: dict[str, float] = {}
    ids = {draft.id for draft in drafts}
    while len(waits) < len(drafts):
        waits |= {claim.id: SYSTEM.monotonic() - began for claim in cycles.turn() if claim.id in ids}
    cycles.end()
    return list(waits.values())


class _Cycles:
    """Cycles of one worker, each of which has to fill all slots while there are jobs."""

    def __init__(self, site: Site, limit: int, *, fair: bool, limits: tuple[Limit, ...] = ()) -> None:
        self._site = site
        site.backend.owns_session = True  # as in a worker, whose statements are prepared
        self._request = ClaimRequest(
            limit=limit,
            types=frozenset({TYPE}),
            limits=limits,
            **(_FAIR if fair else {}),  # type: ignore[arg-type]
        )
        self._held: Sequence[Claim] = ()

    def turn(self) -> Sequence[Claim]:
        done = [completed(one, "null") for one in self._held]
        cycle = self._site.backend.cycle(OWNER, done, self._request)
        if len(cycle.claims) < self._request.limit and cycle.next_due != timedelta(0) and self._has_more():
            raise RuntimeError(f"{len(cycle.claims)} of {self._request.limit} slots were filled")
        self._held = cycle.claims
        return cycle.claims

    def _has_more(self) -> bool:
        return self._site.backend.jobs.stats()[0].queued > 0

    def end(self) -> None:
        self._site.backend.cycle(OWNER, [completed(one, "null") for one in self._held])
        self._held = ()


def _run(site: Site, statement: str) -> None:
    with connections["default"].cursor() as cursor:
        cursor.execute(statement)
