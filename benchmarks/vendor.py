"""The process that measures one vendor. It reads a place as JSON and writes a line for each figure."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict

from benchmarks import (
    administering,
    booking,
    busy,
    capturing,
    claiming,
    counting,
    cycling,
    draining,
    dying,
    enqueueing,
    fairness,
    filling,
    limiting,
    memory,
    newcomer,
    ordering,
    pickups,
    sizing,
    sleeping,
    soaking,
    surviving,
    waking,
)
from benchmarks.databases import Place
from benchmarks.report import Figure
from benchmarks.site import Site
from benchmarks.workers import end_in_order

Measure = Callable[[Site], Iterator[Figure]]

MEASURES: dict[str, Measure] = {
    "enqueue": enqueueing.singly,
    "bulk": enqueueing.in_bulk,
    "cycle": cycling.cycles,
    "claim": claiming.claims,
    "limits": limiting.claims_under_limits,
    "lanes": ordering.lanes,
    "turns": fairness.turns,
    "wake": waking.wake_ups,
    "drain": draining.drains,
    "best": draining.best,
    "newcomer": newcomer.newcomers,
    "sleep": sleeping.naps,
    "atomic": booking.bookings,
    "pickup": pickups.idle,
    "flow": pickups.flowing,
    "compute": pickups.computing,
    "renewal": surviving.renewals,
    "crash": surviving.crashes,
    "death": dying.deaths,
    "full": filling.full_queues,
    "memory": memory.memory,
    "busy": busy.enqueues,
    "budgets": busy.budgets,
    "soak": soaking.soak,
    "instructions": counting.instructions,
    "slots": sizing.slots,
    "workers": sizing.workers,
    "snapshot": sizing.snapshots,
    "neighbours": busy.neighbours,
    "vacuum": sizing.dead_rows,
    "admin": administering.pages,
    "capture": capturing.captures,
}
#: What takes long and much room, and so is done only where it is named.
BY_NAME_ALONE = frozenset({"admin", "capture", "death", "full"})


def main() -> None:
    """Measure what the line on standard input requests."""
    end_in_order()
    asked = json.loads(sys.stdin.readline())
    place = Place(**asked["place"])
    place.configure()
    site = Site(place, quick=asked["quick"])
    try:
        print(json.dumps({"version": site.raw.versions()}), flush=True)
        for name in asked["measures"]:
            for figure in MEASURES[name](site):
                print(json.dumps({"figure": asdict(figure)}), flush=True)
    finally:
        site.close()


if __name__ == "__main__":
    main()
