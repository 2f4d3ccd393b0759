"""Limits and rates across worker processes, judged by a ledger outside of the database.

``python -m benchmarks.flow --database postgres`` kills executors, supervisors and whole workers while limits of 1, 4
and 32 and a limit of each key are used up, priorities change and transactions stay open. With ``--rates``, it judges
rates over workers of which one has a clock an hour ahead. It exits with 1 if a limit or a rate was exceeded.

A minute shows it; ``--jobs 100000 --kills 200`` and ``--rates --seconds 600`` are the whole proof.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from django.core.management import call_command
from django.db import Error, connections, transaction

from benchmarks import flow_ledger
from benchmarks.databases import Place, postgres_place, sqlite_place
from benchmarks.workers import rows, until
from jobqueue import backends
from jobqueue.clock import SYSTEM
from jobqueue.ids import new_id
from jobqueue.records import Draft, Limit, LimitKind, Scope
from jobqueue.states import JobStatus

WORKERS = {"sqlite": 4, "postgres": 8}
RATE_WORKERS = 4
#: By the name of a queue, the number of its limit: in all, or of each key.
LIMITS = {"one": 1, "four": 4, "many": 32, "keyed": 1}
KEYS = 8
#: By the name of a queue, the number of its rate, and the length of the window in seconds.
RATES = {"slow": (1, 1.0), "fast": (100, 1.0), "long": (1_000, 60.0)}
AHEAD = 3_600.0


def main() -> int:
    """Run it on the database that is asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.flow", description=__doc__)
    parser.add_argument("--database", choices=["sqlite", "postgres"], default="sqlite")
    parser.add_argument("--rates", action="store_true", help="judge rates instead of limits")
    parser.add_argument("--seconds", type=float, default=40.0, help="how long rates are judged")
    parser.add_argument("--jobs", type=int, default=6_000)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--hold", type=float, default=0.25, help="how many seconds each job runs")
    given = parser.parse_args()
    place = sqlite_place() if given.database == "sqlite" else postgres_place()
    with place as made, tempfile.TemporaryDirectory(prefix="jobqueue-flow-") as folder:
        made.configure()
        call_command("migrate", verbosity=0, stdout=io.StringIO())
        ledger = Path(folder) / "ledger"
        ledger.touch()
        flow = Flow(made, ledger)
        is_sound = flow.rates(given.seconds) if given.rates else flow.limits(given.jobs, given.kills, given.hold)
        connections.close_all()
    return 0 if is_sound else 1


class Flow:
    """Workers on one database, and the ledger of what they run."""

    def __init__(self, place: Place, ledger: Path) -> None:
        self._place, self._ledger = place, ledger
        self._dice = random.Random(18)  # noqa: S311 - the same victims in each run
        self._workers: list[subprocess.Popen[bytes]] = []
        #: The processes that were killed, and when.
        self._kills: dict[int, float] = {}

    @contextmanager
    def _crew(self, count: int, ahead: float = 0.0) -> Iterator[None]:
        """Start workers, of which the first has a clock that is ahead, and kill those that are left."""
        try:
            self._workers = [self._start(0.0 if number else ahead) for number in range(count)]
            until(lambda: rows("Worker").count() >= count, "the workers are up", patience=300)
            yield
        finally:
            for one in self._workers:
                self._kill_all(_family(one.pid))
                one.wait()

    def _start(self, ahead: float = 0.0) -> subprocess.Popen[bytes]:
        options = {"processes": 2, "concurrency": 80 // WORKERS[self._place.vendor] // 2}
        asked = {"place": asdict(self._place), "constants": {}, "options": options, "ahead": ahead}
        command = [sys.executable, "-m", "benchmarks.worker_process", json.dumps(asked)]
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def _fill(self, queue: str, number: int, seconds: float) -> None:
        keys = [f"key-{one}" for one in range(KEYS)] if queue == "keyed" else ["-"]
        payloads = [json.dumps({"path": str(self._ledger), "seconds": seconds, "key": key}) for key in keys]
        accounts = [json.dumps({"account": key}, separators=(",", ":")) for key in keys]
        drafts = [
            Draft(id=new_id(), type="occupy", queue=queue, payload=payload, max_retries=1_000, concurrency_key=account)
            for payload, account in islice(cycle(zip(payloads, accounts, strict=True)), number)
        ]
        backends.current().enqueue(drafts)

    # Limits

    def limits(self, jobs: int, kills: int, hold: float) -> bool:
        """Kill processes while limits are used up. Return whether none was exceeded."""
        share = {name: number * (KEYS if name == "keyed" else 1) for name, number in LIMITS.items()}
        for name, number in LIMITS.items():
            key = "account" if name == "keyed" else ""
            backends.current().limits.set(Limit(Scope.QUEUE, name, LimitKind.CONCURRENCY, number, key=key))
            self._fill(name, jobs * share[name] // sum(share.values()), hold)
        expected = jobs * hold / sum(share.values())
        with self._crew(WORKERS[self._place.vendor]):
            until(lambda: self._ledger.stat().st_size > 0, "the first job runs")
            began = SYSTEM.monotonic()
            self._disturb(kills, began, 0.9 * expected)
            until(lambda: not _queued("many"), "the queue is empty", patience=10 * expected + 60)
            span = (began, SYSTEM.monotonic())
            found = flow_ledger.runs(self._ledger, self._kills)
        return self._judge(found, span, share)

    def _disturb(self, kills: int, began: float, seconds: float) -> None:
        """Kill, change priorities and hold transactions open, at moments spread over a length of time."""
        for number in range(kills):
            until(lambda n=number: SYSTEM.monotonic() > began + seconds * n / kills, "its time comes", patience=seconds)  # type: ignore[misc]
            self._kill_some(number)
            try:
                self._meddle()
            except Error:
                connections.close_all()

    def _kill_some(self, number: int) -> None:
        """Kill an executor, a supervisor, or a whole worker, in turn. Replace workers that are gone."""
        place = self._dice.randrange(len(self._workers))
        family = _family(self._workers[place].pid)
        if number % 3 == 0 and len(family) > 2:
            self._kill_all([self._dice.choice(family[2:])])
            return
        if number % 3 == 1:  # its executors end by themselves
            self._kills.update(dict.fromkeys(family, SYSTEM.monotonic()))
            os.kill(family[0], signal.SIGKILL)
        else:
            self._kill_all(family)
        self._workers[place].wait()
        self._workers[place] = self._start()

    def _kill_all(self, pids: list[int]) -> None:
        self._kills.update(dict.fromkeys(pids, SYSTEM.monotonic()))
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue

    def _meddle(self) -> None:
        """Change the priorities of some waiting jobs, and hold a transaction open that has locked running ones."""
        waiting = rows("Job").filter(status=JobStatus.QUEUED.value, queue=self._dice.choice(list(LIMITS)))
        ids = list(waiting.values_list("pk", flat=True)[:50])
        rows("Job").filter(pk__in=ids).update(priority=self._dice.randint(1, 10))
        with transaction.atomic():
            running = rows("Job").filter(status=JobStatus.IN_PROGRESS.value)
            held = list(running.select_for_update(skip_locked=True).values_list("pk", flat=True)[:2])
            time.sleep(0.2 if held and self._place.vendor == "postgres" else 0.05)

    def _judge(self, found: list[flow_ledger.Run], span: tuple[float, float], share: dict[str, int]) -> bool:
        over = flow_ledger.moments_over(found, LIMITS)
        held = flow_ledger.held_by_dead(found, _returns())
        print(f"{self._place.vendor}: {len(found):,} runs, {len(self._kills):,} processes killed")
        print(f"  moments over a limit: {over}")
        for queue, slots in share.items():
            last = max((one.began for one in found if one.queue == queue), default=span[1])
            whole = (span[0], min(span[1], last))
            seconds = slots * max(whole[1] - whole[0], 0.001)
            used, dead = flow_ledger.busy(found, queue, whole), sum(held[queue])
            print(
                f"  {queue}: {slots} slots, {used / seconds:.1%} busy while work waits, "
                f"{dead / seconds:.1%} held by the dead, {used / max(seconds - dead, 0.001):.1%} of the rest"
            )
        longest = max((length for several in held.values() for length in several), default=0.0)
        print(f"  a slot is free again at most {longest:.2f} s after a death")
        return over == 0

    # Rates

    def rates(self, seconds: float) -> bool:
        """Judge the starts of some workers under rates. Return whether no window had too many."""
        for name, (number, per) in RATES.items():
            backends.current().limits.set(Limit(Scope.QUEUE, name, LimitKind.RATE, number, per))
            self._fill(name, int(number * (seconds / per + 2)) + 10, 0.0)
        ahead = AHEAD if self._place.vendor == "postgres" else 0.0  # on SQLite, the machine's clock is the database's
        with ExitStack() as running:
            running.enter_context(self._crew(RATE_WORKERS, ahead))
            until(lambda: self._ledger.stat().st_size > 0, "the first job runs")
            time.sleep(seconds)
        print(f"{self._place.vendor}: {RATE_WORKERS} workers, one of them {ahead:,.0f} s ahead, {seconds:,.0f} s")
        verdicts = [self._judge_rate(name, *rate) for name, rate in RATES.items()]  # each prints its line
        return all(verdicts)

    @staticmethod
    def _judge_rate(queue: str, number: int, per: float) -> bool:
        started = rows("Job").filter(queue=queue).exclude(started_at=None).values_list("started_at", flat=True)
        starts = sorted(one.timestamp() for one in started)
        most = flow_ledger.most_in_a_window(starts, per)
        possible = number * (int((starts[-1] - starts[0]) / per) + 1)
        print(
            f"  {number:,} in {per:g} s: at most {most:,} in any window, {len(starts):,} starts, "
            f"{len(starts) / possible:.1%} of the rate"
        )
        return most <= number


def _family(pid: int) -> list[int]:
    """Return the process ids of a worker: supervisor, zygote, executors."""
    found = [pid]
    for one in found:
        try:
            found += map(int, Path(f"/proc/{one}/task/{one}/children").read_text(encoding="ascii").split())
        except OSError:
            continue
    return found


def _queued(queue: str) -> bool:
    return rows("Job").filter(queue=queue, status=JobStatus.QUEUED.value).exists()


def _returns() -> dict[tuple[str, int], float]:
    """Return when the claims of dead processes were ended, by job and fence, on the monotonic clock."""
    offset = SYSTEM.monotonic() - SYSTEM.now().timestamp()
    ended: Any = rows("Attempt").filter(ending__in=["crashed", "lease_lost"])
    return {(job, fence): at.timestamp() + offset for job, fence, at in ended.values_list("job", "fence", "ended_at")}


if __name__ == "__main__":
    sys.exit(main())
