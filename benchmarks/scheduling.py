"""Schedules under kills: many schedulers are killed at any statement while schedules are paused and edited.

``python -m benchmarks.scheduling --seconds 60`` runs it on both databases, and exits with 1 if a slot was run twice or
lost. It also measures what schedules cost: an idle look among 10,000, and 1,000 that are due at once.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import random
import subprocess
import sys
import time
from collections import Counter
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Any

from django.apps import apps
from django.core.management import call_command
from django.db import Error, connections, transaction

from benchmarks import jobs
from benchmarks.databases import Place, postgres_place, sqlite_place
from jobqueue import backends
from jobqueue.clock import SYSTEM
from jobqueue.errors import JobQueueError
from jobqueue.schedules import operation
from jobqueue.schedules.firing import fire_due

SCHEDULERS = {"sqlite": 5, "postgres": 10}
SCHEDULES = 50
SECOND = timedelta(seconds=1)
#: Schedules that are paused now and then. Their dropped slots are not lost ones.
PAUSED = range(45, SCHEDULES)

Slots = Counter[tuple[str, datetime]]


def main() -> int:
    """Run it on the databases that are asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scheduling", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--database", choices=["sqlite", "postgres"], default="sqlite")
    parser.add_argument("--scheduler", type=float, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.scheduler is not None:
        return _schedule(Place(**json.loads(sys.stdin.readline())), given.scheduler)
    with sqlite_place() if given.database == "sqlite" else postgres_place() as place:
        place.configure()
        call_command("migrate", verbosity=0, stdout=io.StringIO())
        is_sound = _kills(place, given.seconds)
        _costs()
        connections.close_all()
    return 0 if is_sound else 1


# A scheduler


def _schedule(place: Place, ahead: float) -> int:
    """Fire slots until killed, by a clock that is some seconds ahead."""
    place.configure()
    _shift(ahead)
    while True:
        try:
            due, _stored = fire_due(backends.current())
        except Error:
            connections.close_all()
            continue
        wait = 0.2 if due.next_at is None else (due.next_at - due.now).total_seconds()
        time.sleep(min(0.2, max(0.001, wait)))


def _shift(seconds: float) -> None:
    """Set this process's clock ahead."""
    read = SYSTEM.now
    SYSTEM.now = lambda: read() + timedelta(seconds=seconds)  # type: ignore[method-assign]


# The run


def _kills(place: Place, seconds: float) -> bool:
    schedules = _make()
    began, clock = SYSTEM.now(), SYSTEM.monotonic
    started = [_start(place, number) for number in range(SCHEDULERS[place.vendor])]
    end, kills, chance, found = clock() + seconds, 0, random.Random(7), Counter[tuple[str, datetime]]()  # noqa: S311
    while clock() < end:
        time.sleep(chance.uniform(0.02, 0.3))
        victim = chance.randrange(len(started))
        started[victim].kill()
        started[victim].wait()
        started[victim] = _start(place, victim)
        kills += 1
        _meddle(schedules, chance)
        found += _purge()
    for number in PAUSED:
        _resume(schedules[number])
    time.sleep(3)
    for one in started:
        one.kill()
        one.wait()
    stopped = SYSTEM.now()
    found += _purge()
    return _judge(place.vendor, schedules, found, (began, stopped), kills)


def _start(place: Place, number: int) -> subprocess.Popen[str]:
    """Start a scheduler. On Postgres, where the server's clock counts, that of the first is an hour ahead."""
    ahead = 3_600.0 if place.vendor == "postgres" and number == 0 else 0.0
    command = [sys.executable, "-m", "benchmarks.scheduling", "--scheduler", str(ahead)]
    started = subprocess.Popen(command, stdin=subprocess.PIPE, text=True, env=os.environ)
    with started.stdin or sys.stdout as given:
        given.write(json.dumps(asdict(place)) + "\n")
    return started


def _make() -> list[str]:
    """Make schedules with intervals from a second to a minute, all of whose missed slots are run."""
    given = {"missed": "all", "missed_cap": 10_000}
    intervals = [1 + number * 59 // (SCHEDULES - 1) for number in range(SCHEDULES)]
    for number, every in enumerate(intervals):
        fields = operation.read_fields(jobs.resize_image.name, f"every {every}s", "UTC", {"image_id": number}, given)
        operation.add(f"number-{number}", fields)
    return [f"number-{number}" for number in range(SCHEDULES)]


def _meddle(schedules: list[str], chance: random.Random) -> None:
    """Pause, resume or edit a schedule. An edit that is refused was too late."""
    paused, edited = schedules[chance.choice(PAUSED)], schedules[chance.randrange(PAUSED.start)]
    try:
        one = operation.find(paused)
        operation.resume(one) if one.paused_at else operation.pause(one)
        operation.edit(operation.find(edited), {"options": {"priority": chance.randint(1, 10)}})
    except (JobQueueError, Error):
        return


def _resume(name: str) -> None:
    operation.resume(operation.find(name))


def _purge() -> Slots:
    """Delete all jobs, as if nothing were retained, and count the slots that they had."""
    with transaction.atomic():
        names = dict(_rows("Schedule").values_list("id", "name"))
        rows = list(_rows("Job").select_for_update().values_list("id", "schedule_id", "slot_at"))
        _rows("Job").filter(pk__in=[row[0] for row in rows]).delete()
    return Counter((names[schedule_id], slot) for _, schedule_id, slot in rows if schedule_id)


def _rows(name: str) -> Any:
    """Return the rows of a table. The models can only be imported once Django is set up."""
    return apps.get_model("jobqueue", name)._default_manager.all()


def _judge(vendor: str, schedules: list[str], found: Slots, span: tuple[datetime, datetime], kills: int) -> bool:
    """Compare the slots with a list that is made without the package's rules."""
    began, stopped = (moment.timestamp() for moment in span)
    twice = {slot: count for slot, count in found.items() if count > 1}
    wanted: set[tuple[str, datetime]] = set()
    for number, name in enumerate(schedules):
        every = 1 + number * 59 // (SCHEDULES - 1)
        last = int(stopped - 2)
        wanted |= {
            (name, datetime.fromtimestamp(second, UTC))
            for second in range(int(began) + 1, last + 1)
            if second % every == 0 and number not in PAUSED
        }
    lost = {one for one in wanted - found.keys() if one[1].timestamp() > began + 1}
    strange = {one for one in found if one[1].timestamp() > stopped or one[1].timestamp() < began - 1}
    print(
        f"{vendor}: {len(found):,} slots, {kills} kills, {len(twice)} twice, {len(lost)} lost, "
        f"{len(strange)} outside of the run"
    )
    return not (twice or lost or strange)


# What it costs


def _costs() -> None:
    """Measure an idle look among 10,000 schedules, and how fast 1,000 that are due become jobs."""
    backend, now = backends.current(), backends.current().now()
    schedules = _rows("Schedule")
    schedules.delete()
    common: dict[str, Any] = {"type": "resize_image", "zone": "UTC", "payload": {"image_id": 1}, "rule": "0 3 * * *"}
    later = {"last_slot_at": now, "next_at": now + timedelta(hours=9)}
    schedules.bulk_create(
        schedules.model(id=f"later-{number}", name=f"later-{number}", **common, **later) for number in range(10_000)
    )
    began = time.process_time()
    for _ in range(200):
        fire_due(backend)
    look = (time.process_time() - began) / 200
    soon = {"last_slot_at": now - SECOND, "next_at": now, "rule": "every 1s"}
    schedules.bulk_create(
        schedules.model(id=f"due-{number}", name=f"due-{number}", **common | soon) for number in range(1_000)
    )
    began, stored = SYSTEM.monotonic(), 0
    while stored < 1_000:
        stored += len(fire_due(backend, 200)[1])
    print(f"an idle look among 10,000 schedules takes {look * 1_000:.2f} ms of CPU, once a second")
    print(f"1,000 due schedules are enqueued in {SYSTEM.monotonic() - began:.2f} s")


if __name__ == "__main__":
    sys.exit(main())
