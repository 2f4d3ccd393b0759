"""Retention beside a worker at full speed: ``python -m benchmarks.pruning --jobs 2000000 --database sqlite``.

The same table is drained without and with retention, in turns, because a machine has slow spells. Then the rest is
pruned by itself, and each transaction is timed: that is how long its locks last.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median

from benchmarks import timing
from benchmarks.busy import enqueue_one, in_turns
from benchmarks.raw import Crowd
from benchmarks.site import Site, site_on
from benchmarks.workers import rows, until, worker_at
from jobqueue.clock import SYSTEM
from jobqueue.policy.retention import EndedJob
from jobqueue.policy.retention_rules import read
from jobqueue.retention.walk import Walk

OLD = "old"
RULES = [{"status": "completed", "type": OLD, "keep": 0}]
SLOTS = 50
#: Jobs a second that no worker drains.
FASTEST = 25_000
#: The share of the drain that is left beside retention, and milliseconds.
DRAIN, ENQUEUE, LOCK = 0.9, 10.0, 20.0


@dataclass(frozen=True, slots=True)
class Turn:
    """What happened in a second on average, and how long enqueues took."""

    drained: float
    pruned: float
    enqueues: list[float]


def turn(site: Site, seconds: float, rules: Sequence[object]) -> Turn:
    """Drain no-op jobs for some seconds, and enqueue beside that."""
    done, old = rows("Job").filter(type="resize_image", status="completed"), rows("Job").filter(type=OLD)
    first = done.count()
    with worker_at(replace(site.place, jobqueue={"RETENTION": list(rules)}), concurrency=SLOTS):
        until(lambda: done.count() > first, "the worker drains")
        before, old_before, began = done.count(), old.count(), SYSTEM.monotonic()
        taken = in_turns({"enqueue": enqueue_one}, seconds)["enqueue"]
        drained, pruned = done.count() - before, old_before - old.count()
        length = SYSTEM.monotonic() - began
    until(lambda: not rows("Worker").exists(), "the worker has ended")
    rows("Duty").all().delete()  # the next worker need not wait for its turn
    return Turn(drained / length, pruned / length, taken)


def locks(site: Site) -> list[float]:
    """Prune what is left, and return how long each transaction took."""
    retention, taken = site.backend.retention, list[float]()
    prune = retention.prune

    def timed(jobs: Sequence[EndedJob]) -> list[EndedJob]:
        began = SYSTEM.monotonic()
        gone = prune(jobs)
        taken.append(SYSTEM.monotonic() - began)
        return gone

    retention.prune = timed  # type: ignore[method-assign]
    walk = Walk(site.backend, read(RULES))
    while not walk.is_over:
        walk.step()
    return taken


def report(turns: Sequence[tuple[Turn, Turn]], transactions: Sequence[float]) -> str:
    """Say what was measured, and whether it is enough."""
    share = median(beside.drained / alone.drained for alone, beside in turns)
    speed, pruned = median(alone.drained for alone, _ in turns), median(beside.pruned for _, beside in turns)
    alone, beside = (_p99([one for pair in turns for one in pair[of].enqueues]) for of in (0, 1))
    steps = sorted(1000 * one for one in transactions) or [0.0]
    half, most, longest = timing.percentile(steps, 50), timing.percentile(steps, 99), steps[-1]
    lines = (
        f"drain beside retention  {share:.0%} of {speed:,.0f}/s{_judged(share >= DRAIN)}",
        f"pruned meanwhile        {pruned:,.0f}/s",
        f"enqueue, p99            {beside:.1f} ms, without retention {alone:.1f} ms{_judged(beside <= ENQUEUE)}",
        f"{len(steps):,} transactions, p50 {half:.1f}, p99 {most:.1f}, max {longest:.1f} ms{_judged(longest <= LOCK)}",
    )
    return "\n".join(lines)


def _p99(seconds: Sequence[float]) -> float:
    return 1000 * timing.percentile(sorted(seconds), 99)


def _judged(is_enough: bool) -> str:
    return "  ok" if is_enough else "  TOO MUCH"


def main() -> None:
    """Measure, and print the report."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pruning", description=__doc__)
    parser.add_argument("--jobs", type=int, default=200_000, help="completed jobs to prune (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=5.0, help="the length of a turn (default: %(default)s)")
    parser.add_argument("--turns", type=int, default=3, help="turns without and with retention (default: %(default)s)")
    parser.add_argument("--database", choices=["sqlite", "postgres"], default="sqlite")
    given = parser.parse_args()
    with site_on(given.database) as site:
        site.fresh()
        site.raw.fill(Crowd(count=int(2 * given.turns * FASTEST * given.seconds)))
        site.raw.fill(Crowd(count=given.jobs, type=OLD, status="completed"))  # a walk comes to the newest first
        site.raw.settle_down()
        turns = [(turn(site, given.seconds, []), turn(site, given.seconds, RULES)) for _ in range(given.turns)]
        print(report(turns, locks(site)))


if __name__ == "__main__":
    main()
