"""Scrapes under kills: a real Prometheus reads two web processes, and each sample is compared with the table.

``python -m benchmarks.scraping --seconds 1200`` kills workers, pauses a queue, stops all workers and empties a queue in
turn. It counts the jobs by SQL of its own, and exits with 1 if a gauge was ever further from the truth than one sample,
if a counter fell, or if a query of the dashboard failed. ``--jobs 5000000`` measures a scrape among so many jobs.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import random
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from importlib import import_module
from importlib.resources import as_file, files
from itertools import pairwise
from pathlib import Path

from django.core.management import call_command
from django.db import connection, connections
from django.test import Client

from benchmarks.databases import Place, postgres_place, sqlite_place
from benchmarks.prometheus_server import INTERVAL, Prometheus, prometheus
from benchmarks.scraped_site import TOKEN, URLS
from benchmarks.workers import rows
from jobqueue import backends, control
from jobqueue.clock import SYSTEM
from jobqueue.records import Filter, Scope

WORKERS = 3
QUEUES = ("mail", "images")
#: How often the truth is counted, in seconds.
COUNTED_EVERY = 0.1
#: How old samples would be that are checked to be found out, in seconds.
STALE = 5 * INTERVAL
MONITORING = files("jobqueue") / "observe" / "monitoring"

Counts = dict[tuple[str, str], int]
_COUNT = """
SELECT queue,
       sum(CASE WHEN status = 'queued' AND scheduled_at <= %s THEN 1 ELSE 0 END),
       sum(CASE WHEN status = 'queued' AND scheduled_at > %s THEN 1 ELSE 0 END),
       sum(CASE WHEN status = 'in_progress' THEN 1 ELSE 0 END),
       sum(CASE WHEN status = 'dead_letter' THEN 1 ELSE 0 END)
  FROM job_queue WHERE status IN ('queued', 'in_progress', 'dead_letter') GROUP BY queue
"""
_GAUGES = ("jobqueue_jobs_waiting", "jobqueue_jobs_delayed", "jobqueue_jobs_active", "jobqueue_dead_letters")
#: Waiting and delayed jobs together.
_QUEUED = "queued"
#: How many jobs are enqueued at once. If that happens during a scrape, they are due later than the moment at which the
#: scrape began, so it counts them as delayed.
BURST = 12


def main() -> int:
    """Run it on the database that is asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scraping", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--database", choices=["sqlite", "postgres"], default="sqlite")
    parser.add_argument("--jobs", type=int, help="Measure scrapes among so many jobs instead.")
    given = parser.parse_args()
    with sqlite_place() if given.database == "sqlite" else postgres_place() as place:
        place.jobqueue["MONITOR_TOKEN"] = TOKEN
        place.configure(ROOT_URLCONF=URLS, ALLOWED_HOSTS=["testserver"])
        call_command("migrate", verbosity=0, stdout=io.StringIO())
        is_sound = _cost(given.jobs) if given.jobs else _run(place, given.seconds)
        connections.close_all()
    return 0 if is_sound else 1


# The run


def _run(place: Place, seconds: float) -> bool:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="jobqueue-scraping-")))
        rules = stack.enter_context(as_file(MONITORING / "rules.yml"))
        ports = [stack.enter_context(_web(place)) for _ in range(2)]
        server = stack.enter_context(prometheus(folder, ports, TOKEN, rules))
        crew = stack.enter_context(_crew(place))
        truth = stack.enter_context(_counting())
        began = SYSTEM.monotonic()
        kills = _trouble(crew, seconds)
        crew.stop()
        time.sleep(2 * INTERVAL + COUNTED_EVERY)  # the last samples
        lasted = SYSTEM.monotonic() - began
        print(f"{place.vendor}: {lasted:.0f} s, {kills} kills, {len(truth)} counts")
        verdicts = [_gauges(server, truth, lasted), _counters(server, lasted), _queries(server, lasted)]
    return all(verdicts)


class Crew:
    """The workers of a run."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._started: list[subprocess.Popen[bytes]] = []

    def fill(self) -> None:
        """Start workers until there are enough."""
        while len(self._started) < WORKERS:
            options = {"concurrency": 4, "processes": 1}
            asked = json.dumps({"place": asdict(self._place), "constants": {}, "options": options})
            command = [sys.executable, "-m", "benchmarks.worker_process", asked]
            self._started.append(subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True))

    def kill(self) -> None:
        """Kill a worker with all its processes."""
        victim = self._started.pop(0)
        os.killpg(victim.pid, signal.SIGKILL)
        victim.wait()

    def stop(self) -> None:
        """Stop all workers, and wait for them."""
        for one in self._started:
            one.terminate()
        for one in self._started:
            one.wait()
        self._started.clear()


@contextmanager
def _crew(place: Place) -> Iterator[Crew]:
    crew = Crew(place)
    try:
        crew.fill()
        yield crew
    finally:
        crew.stop()


@contextmanager
def _web(place: Place) -> Iterator[int]:
    """Start a web process. Yield its port."""
    command = [sys.executable, "-m", "benchmarks.scraped_site", json.dumps(asdict(place))]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None  # noqa: S101 - as Popen was asked
            yield int(process.stdout.readline())
        finally:
            process.terminate()


def _trouble(crew: Crew, seconds: float) -> int:
    """Enqueue jobs, and make trouble every few seconds, until the time is over. Return the number of kills."""
    jobs, chance = import_module("benchmarks.jobs"), random.Random(7)  # noqa: S311
    end, kills, turn = SYSTEM.monotonic() + seconds, 0, 0
    while SYSTEM.monotonic() < end:
        turn += 1
        for queue in QUEUES:
            jobs.nap.using(queue=queue).enqueue_many({"seconds": chance.uniform(0, 0.3)} for _ in range(BURST))
        jobs.nap.using(queue="mail", delay=chance.uniform(1, 9)).enqueue(seconds=0.1)
        if turn % 3 == 0:
            jobs.nap.using(queue="images", max_retries=1).enqueue(seconds=-1.0)  # fails
        time.sleep(chance.uniform(0.8, 1.2))
        match turn % 24:
            case 4 | 12:
                crew.kill()
                kills += 1
            case 6 | 14:
                crew.fill()
            case 8:
                control.pause(Scope.QUEUE, "mail", "a test")
            case 16:
                control.resume(Scope.QUEUE, "mail")
            case 18:
                crew.stop()
            case 20:
                control.purge_matching(Filter(queues=frozenset({"images"})))
            case 21:
                crew.fill()
    return kills


# The truth


@contextmanager
def _counting() -> Iterator[list[tuple[float, Counts]]]:
    """Count the jobs again and again in a thread. Yield the counts with their times."""
    found: list[tuple[float, Counts]] = []
    is_over = threading.Event()

    def count() -> None:
        while not is_over.wait(COUNTED_EVERY):
            found.append((time.time(), _counts()))  # noqa: TID251 - Prometheus stores such times
        connections.close_all()

    thread = threading.Thread(target=count)
    thread.start()
    try:
        yield found
    finally:
        is_over.set()
        thread.join()


def _counts() -> Counts:
    field = rows("Job").model._meta.get_field("scheduled_at")
    now = field.get_db_prep_value(backends.current().now(), connection)
    counted = dict.fromkeys(((gauge, queue) for gauge in _GAUGES for queue in QUEUES), 0)
    with connection.cursor() as cursor:
        cursor.execute(_COUNT, [now, now])
        for queue, *numbers in cursor.fetchall():
            counted |= {(gauge, queue): number for gauge, number in zip(_GAUGES, numbers, strict=True)}
    sums = {(_QUEUED, queue): sum(counted[gauge, queue] for gauge in _GAUGES[:2]) for queue in QUEUES}
    return counted | sums


# The verdicts


def _gauges(server: Prometheus, truth: list[tuple[float, Counts]], lasted: float) -> bool:
    """Compare each sample with what was true within a sample of it. Stale samples must be told from fresh ones."""
    samples = [
        ((gauge, labels["queue"]), at, value)
        for gauge, families in ({_QUEUED: _GAUGES[:2]} | {one: (one,) for one in _GAUGES}).items()
        for labels, values in _by_queue(server, families, lasted)
        for at, value in values
        if labels["queue"] in QUEUES
    ]
    wrong = [one for one in samples if not _is_true(truth, *one)]
    stale = [key for key, at, value in samples if not _is_true(truth, key, at + STALE, value)]
    for key, at, value in wrong[:10]:
        print(f"  wrong: {key} was {value} at {at}")
    answered = server.ask("query", query=f"avg(avg_over_time(up[{int(lasted)}s]))")["result"][0]["value"][1]
    print(
        f"  {len(samples)} samples of gauges, {len(wrong)} further from the truth than one sample; {len(stale)} would "
        f"be if they were {STALE:g} s old; {float(answered):.1%} of the scrapes were answered"
    )
    return bool(samples) and bool(stale) and not wrong


def _is_true(truth: list[tuple[float, Counts]], key: tuple[str, str], at: float, value: float) -> bool:
    """Return whether a value lies between those that were counted around a moment."""
    near = [counts[key] for when, counts in truth if abs(when - at) <= INTERVAL]
    if len(near) < 2:
        return True  # at the end
    slack = max(abs(later - earlier) for earlier, later in pairwise(near))
    slack += BURST if key[0] in _GAUGES[:2] else 0
    return min(near) - slack <= value <= max(near) + slack


def _by_queue(
    server: Prometheus, gauges: Sequence[str], lasted: float
) -> list[tuple[Mapping[str, str], list[tuple[float, float]]]]:
    """Return the samples of gauges, summed up over the types, for each target and queue."""
    found: dict[tuple[str, str], dict[float, float]] = {}
    for labels, samples in server.samples(f'{{__name__=~"{"|".join(gauges)}"}}', lasted):
        sums = found.setdefault((labels["instance"], labels["queue"]), {})
        for at, value in samples:
            sums[at] = sums.get(at, 0.0) + value
    return [({"instance": name, "queue": queue}, sorted(sums.items())) for (name, queue), sums in found.items()]


def _counters(server: Prometheus, lasted: float) -> bool:
    """Look for counters that fell, and compare the last values with the table."""
    falls = 0
    last: dict[str, float] = {}
    for labels, samples in server.samples('{__name__=~"jobqueue_.*_(total|count|sum|bucket)"}', lasted):
        values = [value for _at, value in samples]
        falls += sum(later < earlier for earlier, later in pairwise(values))
        if labels["__name__"] == "jobqueue_attempts_total" and labels["outcome"] == "completed":
            last[labels["instance"]] = last.get(labels["instance"], 0) + values[-1]
    stored = rows("Job").filter(status="completed", queue="mail").count()
    print(f"  {falls} counters fell; completed: {last} counted, {stored} still stored in mail")
    return not falls and len(set(last.values())) == 1


def _queries(server: Prometheus, lasted: float) -> bool:
    """Ask each query of the dashboard, and read the rules."""
    dashboard = json.loads((MONITORING / "dashboard.json").read_text(encoding="utf-8"))
    asked = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", ())]
    empty = []
    for expression in asked:
        query = re.sub(r"\$(job|queue|type)\b", ".*", expression.replace("$__rate_interval", f"{int(lasted)}s"))
        if not server.ask("query", query=query)["result"]:
            empty.append(expression)
    broken = [
        rule["name"]
        for group in server.ask("rules")["groups"]
        for rule in group["rules"]
        if rule["health"] not in ("ok", "unknown")
    ]
    print(f"  {len(asked)} queries of the dashboard answered, {len(empty)} without data; rules in trouble: {broken}")
    for one in empty:
        print(f"    without data: {one}")
    return not broken


# What a scrape costs


def _cost(count: int) -> bool:
    """Measure scrapes among many jobs, in this process, before and after the database has statistics."""
    from_millions = import_module("benchmarks.millions")
    from_millions.fill(count)
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("VACUUM job_queue")
    client = Client(headers={"Authorization": f"Bearer {TOKEN}"})
    for name in ("never analysed", "analysed"):
        if name == "analysed":
            with connection.cursor() as cursor:
                cursor.execute("ANALYZE")
        times = []
        for _ in range(60):
            began = SYSTEM.monotonic()
            answer = client.get("/metrics/")
            times.append((SYSTEM.monotonic() - began) * 1_000)
        size = len(answer.content) / 1_000
        p95 = statistics.quantiles(times[10:], n=20)[-1]
        print(f"{count:,} jobs, {name}: {statistics.median(times):.1f} ms, p95 {p95:.1f} ms, {size:,.0f} kB")
        if answer.status_code != 200:
            print(answer.content[:300])
            return False
    return True


if __name__ == "__main__":
    sys.exit(main())
