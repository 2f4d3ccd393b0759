"""The time to enqueue while a worker is busy, alone and in a view, beside a million rows."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from django.core.handlers.wsgi import WSGIHandler
from django.db.models import Count, Max, Min
from django.test import RequestFactory, override_settings

from benchmarks import timing
from benchmarks.jobs import Resize, resize_image
from benchmarks.raw import Crowd, rows_to_insert
from benchmarks.report import Figure, Value
from benchmarks.site import Site
from benchmarks.workers import rows, until, worker
from jobqueue.clock import SYSTEM
from jobqueue.ids import new_id

NEW, AGAIN, VIEW = "enqueue, new key", "enqueue, key there", "view of row and job"
#: Milliseconds that 99 of 100 enqueues take at most.
ENQUEUE = {"sqlite": 10.0, "postgres": 5.0}
#: Milliseconds that 95 of 100 take at most, beside a million rows.
BUDGETS = {NEW: 10.0, AGAIN: 10.0, VIEW: 20.0}

#: What a producer pauses between two acts, so that it leaves the worker a processor; staggered, so as not to beat in
#: time with the worker's turns.
_PAUSE = 0.003
_STAGGER = 0.0003

Act = Callable[[], object]


@dataclass(frozen=True, slots=True)
class Work:
    """The load of the worker: one kind of job, and the number of slots."""

    name: str
    kind: Crowd
    slots: int


USUAL = Work("jobs of 5 ms", Crowd(count=0, type="nap", payload='{"seconds":0.005}'), slots=10)
#: As fast as it can: on SQLite that keeps the only write lock taken nearly all the time.
FULL_SPEED = Work("no-op jobs", Crowd(count=0), slots=50)
SLOTS = (2, 10, 50, 200)


def enqueues(site: Site) -> Iterator[Figure]:
    """Enqueue with validation, key and commit while a worker drains at full speed, beside the bare INSERT."""
    with _busy(site, FULL_SPEED) as speed:
        durations = in_turns({"ours": enqueue_one, "raw": lambda: _insert(site)}, site.size(15, 3))
        drained = speed()
    ours, raw = _tail(durations["ours"], drained), _tail(durations["raw"], drained)
    goal = ENQUEUE[site.place.vendor]
    yield Figure(
        database=site.place.vendor,
        measure=f"enqueue one, while {FULL_SPEED.name} drain by {FULL_SPEED.slots}",
        ours=ours,
        raw=raw,
        goal=f"p99 ≤ {goal:g} ms",
        reached=ours.numbers["p99"] <= goal,
    )


def budgets(site: Site) -> Iterator[Figure]:
    """Enqueue and call a view beside a million rows, with a busy worker and with one at full speed."""
    acts: dict[str, Act] = {NEW: enqueue_one, AGAIN: lambda: enqueue_one("again")}
    length = site.size(10, 2)
    for work in (USUAL, FULL_SPEED):
        with _busy(site, work) as speed, override_settings(ROOT_URLCONF="benchmarks.views"):
            enqueue_one("again")
            # The end of a request closes the connection: enqueues that keep theirs come before.
            durations = in_turns(acts, length) | in_turns({VIEW: _request}, length)
            drained = speed()
        for act, goal in BUDGETS.items():
            tail = _tail(durations[act], drained)
            is_judged = work is USUAL
            yield Figure(
                database=site.place.vendor,
                measure=f"{act}, {_backlog(site):,} rows, {work.name} by {work.slots}",
                ours=tail,
                goal=f"p95 ≤ {goal:g} ms" if is_judged else "",
                reached=tail.numbers["p95"] <= goal if is_judged else None,
            )


def neighbours(site: Site) -> Iterator[Figure]:
    """Enqueue and call a view beside a worker at full speed, by its number of slots."""
    for slots in SLOTS:
        with _busy(site, replace(FULL_SPEED, slots=slots)) as speed, override_settings(ROOT_URLCONF="benchmarks.views"):
            durations = in_turns({NEW: enqueue_one}, site.size(5, 2)) | in_turns({VIEW: _request}, site.size(5, 2))
            drained = speed()
        for act, taken in durations.items():
            yield Figure(
                database=site.place.vendor,
                measure=f"{act}, while {FULL_SPEED.name} drain by {slots}",
                ours=_tail(taken, drained),
            )


def _backlog(site: Site) -> int:
    return site.size(1_000_000, 100_000)


@contextmanager
def _busy(site: Site, work: Work) -> Iterator[Callable[[], float]]:
    """Keep a worker busy with a backlog. Yield a function that returns its speed, and raises if it finished early."""
    site.fresh()
    site.raw.fill(replace(work.kind, count=_backlog(site)))
    site.raw.settle_down()
    with worker(site, concurrency=work.slots):
        until(lambda: rows("Job").filter(status="completed").exists(), "the worker drains")
        yield _speed


def _speed() -> float:
    ours = rows("Job").filter(id__startswith="0BENCH")
    if not ours.filter(status="queued").exists():
        raise RuntimeError("the backlog did not outlast the measuring")
    span = ours.filter(status="completed").aggregate(first=Min("started_at"), last=Max("completed_at"), all=Count("pk"))
    return float(span["all"] / (span["last"] - span["first"]).total_seconds())


def in_turns(acts: Mapping[str, Act], length: float) -> dict[str, list[float]]:
    """Call the functions in turns for the given seconds, and record how long each call took."""
    durations: dict[str, list[float]] = {name: [] for name in acts}
    end, turn = SYSTEM.monotonic() + length, 0
    while SYSTEM.monotonic() < end:
        turn += 1
        for name, act in acts.items():
            durations[name].append(timing.seconds(act))
            time.sleep(_PAUSE + turn % 7 * _STAGGER)
    return durations


def _tail(durations: list[float], drained: float) -> Value:
    tail = timing.tail(durations)
    numbers = tail.numbers | {"drained": drained}
    text = f"{tail.text.removesuffix(' ms')}, max {numbers['max']:.0f} ms beside {drained:,.0f}/s"
    return Value(text, numbers)


def enqueue_one(key: str | None = None) -> None:
    resize_image.using(idempotency_key=key or new_id()).enqueue(Resize(image_id=7))


def _insert(site: Site) -> None:
    site.raw.enqueue(rows_to_insert(1, keyed=True))


def _request() -> None:
    """Call the view as a web server does, from the environment to the end of the request."""
    environment = RequestFactory().post("/", {"name": new_id()}).environ
    response: Any = WSGIHandler()(environment, lambda *_: bytes)
    response.close()
    if response.status_code != 200:
        raise RuntimeError(f"the view answered {response.status_code}")
