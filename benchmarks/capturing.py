"""The example's capture view under load: response times beside a busy worker, and the cost of kills."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from importlib.util import find_spec
from threading import Thread
from typing import Any

from django.db import connection, connections

from benchmarks import timing
from benchmarks.capture_site import Restarted, migrate, server_at, worker_at
from benchmarks.children import child
from benchmarks.posting import Load
from benchmarks.report import Figure, Value
from benchmarks.site import Site
from benchmarks.workers import until
from jobqueue.clock import SYSTEM

RATE = 200.0
BUDGET = 100.0
#: What the web server and the worker get to come up before the clock runs.
WARM_UP = 50
PATIENCE = 900.0

Answer = dict[str, Any]


def captures(site: Site) -> Iterator[Figure]:
    """Post 200 events a second for a minute beside a worker; then again, with worker and server killed."""
    if find_spec("gunicorn") is None:
        raise RuntimeError("gunicorn is not installed; install django-jobqueue[test]")
    length = site.size(60, 1)
    steady, elapsed = _run(site, length, kills=False)
    yield _latencies(site, steady, length)
    yield _kept(site, "all jobs done", steady, elapsed)
    shaken, elapsed = _run(site, site.size(60, 3), kills=True)
    yield _kept(site, "worker, then server killed", shaken, elapsed)


def _run(site: Site, length: float, *, kills: bool) -> tuple[list[Answer], float]:
    """Post a load. Return the answers, and how long after the first event the last job was completed."""
    connections.close_all()
    site.raw.empty()
    migrate(site.place)
    with ExitStack() as running:
        worker = running.enter_context(worker_at(site.place))
        port, server = running.enter_context(server_at(site.place))
        answers = list(_posted(Load(port=port, rate=RATE, seconds=WARM_UP / RATE)))
        began = SYSTEM.monotonic()
        killer = Thread(target=_kill, args=(worker, server, length))
        if kills:
            running.callback(killer.join)
            killer.start()
        answers += _posted(Load(port=port, rate=RATE, seconds=length))
        until(_all_done, "all jobs are done", pause=0.2, patience=PATIENCE)
        return answers, SYSTEM.monotonic() - began


def _posted(load: Load) -> Iterator[Answer]:
    with child("benchmarks.posting", asked=asdict(load)) as posting:
        yield from map(json.loads, posting.answers)
        if posting.status():
            raise RuntimeError("the process that posts events failed")


def _kill(worker: Restarted, server: Restarted, length: float) -> None:
    """Kill the worker after a third of the time and the server after two thirds, and restart both."""
    time.sleep(length / 3)
    worker.kill()
    time.sleep(length / 3)
    server.kill()
    server.start()
    worker.start()


def _latencies(site: Site, answers: Sequence[Answer], length: float) -> Figure:
    tail = timing.tail([answer["seconds"] for answer in answers[WARM_UP:]])
    return Figure(
        database=site.place.vendor,
        measure=f"capture over HTTP, {RATE:g} events/s for {length} s beside a worker",
        ours=tail,
        goal=f"p95 < {BUDGET:g} ms",
        reached=tail.numbers["p95"] < BUDGET,
    )


def _kept(site: Site, what: str, answers: Sequence[Answer], elapsed: float) -> Figure:
    """Compare the accepted events with the tables."""
    accepted = {answer["id"] for answer in answers}
    lost = accepted - _ids(_SEEN_TO)
    again = sum(answer["tries"] > 1 for answer in answers)
    numbers = {"accepted": len(accepted), "lost": len(lost), "again": again, "jobs": _number(_JOBS), "seconds": elapsed}
    strays = _number(_TWICE) + _number(_UNPUBLISHED) + _number(_UNDONE)
    return Figure(
        database=site.place.vendor,
        measure=f"events accepted and lost, {what}",
        ours=Value(
            f"{len(accepted):,} accepted, {len(lost)} lost, {again} sent again; "
            f"{numbers['jobs']:,.0f} jobs in {elapsed:.0f} s",
            numbers,
        ),
        goal="0 lost, none twice",
        reached=not lost and not strays,
    )


#: Conversations whose messages are there and whose job was completed.
_SEEN_TO = """
SELECT c.id FROM conversations c JOIN job_queue j ON j.idempotency_key = 'sanitize-ai-validation-' || c.id
 WHERE j.status = 'completed' AND c.status = 'learned'
   AND (SELECT count(*) FROM messages m WHERE m.conversation_id = c.id) = 2
"""
_JOBS = "SELECT count(*) FROM job_queue"
_ACTIVE = "SELECT count(*) FROM job_queue WHERE status IN ('queued', 'in_progress')"
_UNDONE = "SELECT count(*) FROM job_queue WHERE status <> 'completed'"
_UNPUBLISHED = """
SELECT (SELECT count(*) FROM learnings) - (SELECT count(*) FROM uploads WHERE status = 'confirmed')
"""
_TWICE = "SELECT count(*) - count(DISTINCT chain_tx_hash) FROM uploads"


def _all_done() -> bool:
    return _number(_ACTIVE) == 0


def _number(statement: str) -> int:
    return int(_rows(statement)[0][0])


def _ids(statement: str) -> set[str]:
    return {row[0] for row in _rows(statement)}


def _rows(statement: str) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement)
        return list(cursor.fetchall())
