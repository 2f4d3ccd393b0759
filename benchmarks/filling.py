"""Queues with a capacity, under producers that enqueue three times what a worker can do."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, replace

from benchmarks.databases import Place
from benchmarks.report import Figure, Value
from benchmarks.site import Site
from benchmarks.workers import rows, worker_at
from jobqueue.api.capacity import OLDEST

PRODUCERS = 50
CAPACITY = 400
SLOTS = 4
#: What the handler takes, in seconds, and so what a worker can do at most in a second.
WORK = 0.02
SPEED = SLOTS / WORK
PACE = 3 * SPEED
POLICIES = ("shed", "block", "raise")
#: How long producers may wait. One inside a transaction doesn't wait: its call takes much less, on a busy machine too.
BLOCK_FOR = 20
SHORT = BLOCK_FOR / 2


def full_queues(site: Site) -> Iterator[Figure]:
    """Fill queues that shed, block and raise, and measure by how much they exceed their capacity."""
    for policy in POLICIES:
        site.fresh()
        options = {"capacity": CAPACITY, "when_full": policy} | ({"block_for": BLOCK_FOR} if policy == "block" else {})
        place = replace(site.place, jobqueue={"QUEUES": {"default": options}})
        with worker_at(place, concurrency=SLOTS) as running:
            running.wait_until_up()
            deepest, told = _fill(place, seconds=site.size(8, 5))
        yield _figure(site, policy, deepest, told)


def _fill(place: Place, seconds: float) -> tuple[int, dict[str, float]]:
    """Run the producers. Return the greatest depth of the queue, and what the producers counted."""
    asked = {"place": asdict(place), "producers": PRODUCERS, "pace": PACE, "seconds": seconds, "work": WORK}
    command = [sys.executable, "-m", "benchmarks.filling_process", json.dumps(asked)]
    deepest = 0
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        while process.poll() is None:
            deepest = max(deepest, rows("Job").filter(status="queued").count())
            time.sleep(0.02)
        found = [json.loads(line) for line in process.stdout or ()]
    if len(found) < PRODUCERS:
        raise RuntimeError(f"only {len(found)} of {PRODUCERS} producers came to their end")
    sums = {name: sum(one[name] for one in found) for name in found[0] if name != "longest_held"}
    return deepest, sums | {"longest_held": max(one["longest_held"] for one in found)}


def _figure(site: Site, policy: str, deepest: int, told: dict[str, float]) -> Figure:
    kept = rows("Job").filter(priority=1).count()
    excess = max(0, deepest - CAPACITY)
    urgent = told["urgent_stored"] if policy == "shed" else 0
    # What all producers enqueue until each has seen the queue full; urgent jobs are never shed.
    most = PACE * OLDEST + urgent
    lost = told["urgent_shed"] + told["urgent_stored"] - kept
    text = (
        f"deepest {deepest:,}, {excess:,} above {CAPACITY:,}; stored {told['stored']:,.0f}, shed {told['shed']:,.0f}, "
        f"refused {told['refused']:,.0f}, urgent shed {told['urgent_shed']:,.0f}, "
        f"longest call in a transaction {told['longest_held']:.2f} s"
    )
    return Figure(
        database=site.place.vendor,
        measure=f"{policy}: {PRODUCERS} processes at {PACE:,.0f} jobs/s, a worker that does {SPEED:,.0f}",
        ours=Value(text, {"deepest": deepest, "excess": excess, **told}),
        goal=f"≤ {most:,.0f} above, none urgent shed, transactions ≤ {SHORT:g} s",
        reached=excess <= most and not lost and told["longest_held"] <= SHORT,
    )
