"""The recovery time of jobs whose whole worker is killed on a machine that lives."""

from __future__ import annotations

import os
import random
import signal
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from benchmarks import timing
from benchmarks.jobs import last
from benchmarks.report import Figure
from benchmarks.site import Site
from benchmarks.workers import Worker, rows, until, worker
from jobqueue.clock import SYSTEM

BACK = 1_000.0
SLOTS = 10


def deaths(site: Site) -> Iterator[Figure]:
    """Kill all processes of a worker, and measure the time until its jobs run again."""
    times = site.size(200, 5)
    for heir, is_there in (("beside another worker", True), ("and start a new worker", False)):
        recovery = _Recovery(site)
        for _ in range(times):
            recovery.measure(is_there=is_there)
        tail = timing.tail(recovery.durations)
        faults = f"overlaps {recovery.overlaps}, stale writes {recovery.stale}"
        yield Figure(
            database=site.place.vendor,
            measure=f"kill -9 of a worker {heir}, to each of its {SLOTS} jobs run again, {times} times ({faults})",
            ours=tail,
            goal=f"p99 ≤ {BACK:g} ms, no overlap, no stale write",
            reached=tail.numbers["p99"] <= BACK and not (recovery.overlaps or recovery.stale),
        )


class _Recovery:
    """Kills workers, and adds up what became of their jobs."""

    def __init__(self, site: Site) -> None:
        self.durations: list[float] = []
        self.overlaps = self.stale = 0
        self._site = site
        self._dice = random.Random(17)  # noqa: S311 - the same order of kills in each run

    def measure(self, *, is_there: bool) -> None:
        """Kill one worker with its jobs, while another one is there or is started then."""
        self._site.fresh()
        with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
            ledger = Path(folder) / "ledger"
            ledger.touch()
            victim = stack.enter_context(worker(self._site, concurrency=SLOTS))
            victim.wait_until_up()
            last.enqueue_many([{"path": str(ledger)} for _ in range(SLOTS)])
            until(lambda: len(_lives(ledger)) == SLOTS, "all jobs run")
            if is_there:
                stack.enter_context(worker(self._site, concurrency=SLOTS)).wait_until_up()
                until(lambda: rows("Worker").count() == 2, "both workers are registered")
            killed = self._kill(victim)
            if not is_there:
                stack.enter_context(worker(self._site, concurrency=SLOTS))
            until(lambda: rows("Job").filter(status="completed").count() == SLOTS, "all jobs are completed")
            self._add_up(_lives(ledger), killed)

    def _kill(self, victim: Worker) -> float:
        family = victim.family()
        self._dice.shuffle(family)
        killed = SYSTEM.monotonic()
        for pid in family:
            os.kill(pid, signal.SIGKILL)
        return killed

    def _add_up(self, lives: dict[str, dict[int, list[float]]], killed: float) -> None:
        for runs in lives.values():
            (_, first), *others = sorted(runs.items())
            self.durations.append(others[0][1][0] - killed)
            self.overlaps += any(moments[0] < first[-1] for _, moments in others)
        stored = dict(rows("Job").values_list("id", "result"))
        self.stale += sum(stored[job_id] != max(runs) for job_id, runs in lives.items())


def _lives(ledger: Path) -> dict[str, dict[int, list[float]]]:
    """Read at which moments each run of each job was alive."""
    found: dict[str, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    text, _, _ = ledger.read_text(encoding="ascii").rpartition("\n")
    for line in text.splitlines():
        job_id, fence, moment = line.split()
        found[job_id][int(fence)].append(float(moment))
    return found
