"""The turns of a worker: settle fifty jobs and claim the next fifty, until none is left."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from benchmarks import timing
from benchmarks.raw import RESULT, Crowd, Held, Raw
from benchmarks.report import Figure, Goal
from benchmarks.site import REPETITIONS, Site
from jobqueue.policy.settling import completed
from jobqueue.records import ClaimRequest, Settlement

SLOTS = 50
GOALS = {"sqlite": Goal(30_000, beside=79_200), "postgres": Goal(15_000, beside=44_500)}
OWNER = "bench:1:boot"
REQUEST = ClaimRequest(limit=SLOTS, types=frozenset({"resize_image"}))


def cycles(site: Site) -> Iterator[Figure]:
    """Drain the queue with ``backend.cycle``, beside the combined statement of a handwritten worker."""
    count = site.size(20_000, 2_000)

    def ours() -> float:
        site.fresh()
        site.raw.fill(Crowd(count=count))
        site.backend.cycle(OWNER)  # connects
        return count / timing.seconds(lambda: _drain(site, count))

    def raw() -> float:
        site.fresh()
        site.raw.fill(Crowd(count=count))
        return count / timing.seconds(lambda: drain_raw(site.raw, count))

    mine, bare = timing.interleaved(REPETITIONS, ours, raw)
    measure = f"settle and claim by {SLOTS}, draining {count:,}"
    yield timing.compared_rates(site.place.vendor, measure, mine, bare, GOALS[site.place.vendor])


def _drain(site: Site, expected: int) -> None:
    settlements: Sequence[Settlement] = ()
    drained = 0
    while True:
        turn = site.backend.cycle(OWNER, settlements, REQUEST)
        if turn.refused:
            raise RuntimeError("a completion was refused")
        settlements = [completed(claim, RESULT) for claim in turn.claims]
        drained += len(settlements)
        if not settlements:
            break
    _check(drained, expected)


def drain_raw(raw: Raw, expected: int, limit: int = SLOTS) -> None:
    """Drain the queue with the combined statement of a handwritten worker, in batches."""
    done: Sequence[Held] = ()
    drained = 0
    while done := raw.cycle(OWNER, done, limit):
        drained += len(done)
    _check(drained, expected)


def _check(drained: int, expected: int) -> None:
    if drained != expected:
        raise RuntimeError(f"{drained} jobs were drained, not {expected}")
