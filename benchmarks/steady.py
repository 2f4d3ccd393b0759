"""The command ``python -m benchmarks.steady``: rate and waiting time while a snapshot is held, second by second.

The long runs are ``--seconds 1800 --rate 800``, ``--seconds 300 --rate 2000 --together 4`` and ``--database sqlite
--seconds 600``. ``--aged 1440000`` does in half a minute to the table what 30 minutes at 800 a second do. The picture
of the documentation is ``--recorded docs/measured/steady.json --before docs/measured/steady-without-floors.json --chart
docs/measured/steady.svg``, and needs no database.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from typing import Any

from django.db import connection

from benchmarks.children import child
from benchmarks.databases import Place
from benchmarks.held import chart, quantile
from benchmarks.site import Site, site_on
from benchmarks.sizing import snapshot
from benchmarks.workers import end_in_order, rows, until, worker
from jobqueue.clock import SYSTEM

WARM = 5
AGED_AT_ONCE = 10_000
FORGOTTEN_WITHIN = 600.0
#: No claim is so slow that it calls for a floor.
WITHOUT_FLOORS = {"jobqueue.backends.postgresql.floors.floor.SLOW": 1e9}
#: What a queue did to its table before the measure: jobs came, were claimed and completed.
AGE = (
    (
        "INSERT INTO job_queue (id, type, payload, scheduled_at, created_at, updated_at) "
        "SELECT gen_random_uuid()::text, 'sign', '{}', clock_timestamp(), now(), now() FROM generate_series(1, %s)"
    ),
    (
        "UPDATE job_queue SET status = 'in_progress', lease_owner = 'x', started_at = scheduled_at, "
        "lease_until = scheduled_at + interval '1 minute', fence = 1 WHERE status = 'queued'"
    ),
    (
        "UPDATE job_queue SET status = 'completed', lease_owner = NULL, lease_until = NULL, completed_at = now() "
        "WHERE status = 'in_progress'"
    ),
)


def arguments(given: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.steady", description=__doc__)
    parser.add_argument("--database", choices=["sqlite", "postgres"], default="postgres")
    parser.add_argument("--seconds", type=int, default=60, help="how long the snapshot is held while jobs flow")
    parser.add_argument("--rate", type=int, default=800, help="jobs a second")
    parser.add_argument("--together", type=int, default=1, help="jobs that one transaction enqueues")
    parser.add_argument("--slots", type=int, default=50)
    parser.add_argument("--every", type=int, default=10, help="seconds that one line of the curve sums up")
    parser.add_argument("--aged", type=int, default=0, help="jobs done under the snapshot before (Postgres only)")
    parser.add_argument("--completed", type=int, default=0, help="completed jobs that lie beside (Postgres only)")
    parser.add_argument("--free", action="store_true", help="hold no snapshot")
    parser.add_argument("--without-floors", action="store_true", help="have every claim start at the beginning")
    parser.add_argument("--recorded", type=Path, metavar="FILE", help="measure nothing: take the curve of --json")
    parser.add_argument("--after", action="store_true", help="also measure how soon dead rows or the log are gone")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the curve to FILE")
    parser.add_argument("--chart", type=Path, metavar="FILE", help="draw the curve as SVG")
    parser.add_argument("--before", type=Path, metavar="FILE", help="another curve for the chart, of --json")
    return parser.parse_args(given)


def main() -> None:
    """Measure what the command line requests."""
    end_in_order()
    options = arguments()
    if options.recorded:
        _write(json.loads(options.recorded.read_text(encoding="utf-8")), options)
        return
    with site_on(options.database) as site:
        found = measured(site, options)
        _write(found, options)
        if options.after:
            _write(found | {"gone_after": _gone_after(site)}, options)


def _write(curve: dict[str, Any], options: argparse.Namespace) -> None:
    if options.json:
        options.json.write_text(json.dumps(curve, indent=1) + "\n", encoding="utf-8")
    if options.chart:
        before = json.loads(options.before.read_text(encoding="utf-8")) if options.before else None
        options.chart.write_text(chart(curve, before), encoding="utf-8")


def measured(site: Site, options: argparse.Namespace) -> dict[str, Any]:
    """Let jobs flow under a snapshot, and return the curve."""
    site.fresh()
    _age(options.completed)
    with nullcontext() if options.free else snapshot(site.place):
        _age(options.aged)
        began = site.backend.now()
        constants = WITHOUT_FLOORS if options.without_floors else {}
        with worker(site, constants=constants, concurrency=options.slots) as running:
            running.wait_until_up()
            time.sleep(WARM if options.aged else 0)
            began = site.backend.now()
            _flow(site.place, options)
            curve = _curve(began, options)
        held = site.backend.storage.read() if hasattr(site.backend, "storage") else None
    kept = (held.dead_rows or held.log_size or 0) if held else 0
    print(f"{kept:,} {'bytes of log' if options.database == 'sqlite' else 'dead rows'} at the end")
    return {"aged": options.aged, "rate": options.rate, "curve": curve, "kept": kept}


def _age(count: int) -> None:
    if connection.vendor != "postgresql":
        return
    with connection.cursor() as cursor:
        for _ in range(count // AGED_AT_ONCE):
            cursor.execute(AGE[0], [AGED_AT_ONCE])
            for statement in AGE[1:]:
                cursor.execute(statement)


def _flow(place: Place, options: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory() as folder:
        asked = {
            "place": asdict(place),
            "seconds": options.seconds,
            "rate": options.rate,
            "together": options.together,
            "path": str(Path(folder) / "ledger"),
        }
        with child("benchmarks.producing", asked=asked) as producing:
            producing.answers.read()
            if status := producing.status():
                raise RuntimeError(f"the process that enqueues ended with {status}")


def _curve(began: Any, options: argparse.Namespace) -> list[dict[str, float]]:
    """Return a line for each stretch of time: jobs begun a second, and how long they waited, in milliseconds."""
    found = []
    print(f"{'second':>7} {'begun/s':>8} {'wait p50':>9} {'p99':>9} ms")
    for start in range(0, options.seconds, options.every):
        since = began + timedelta(seconds=start)
        until_ = since + timedelta(seconds=options.every)
        moments = rows("Job").filter(started_at__gte=since, started_at__lt=until_)
        waits = sorted(
            1000 * (begun - due).total_seconds() for due, begun in moments.values_list("scheduled_at", "started_at")
        )
        line = {
            "second": start,
            "rate": len(waits) / options.every,
            "p50": quantile(waits, 0.5),
            "p99": quantile(waits, 0.99),
        }
        print(f"{start:>7} {line['rate']:>8.0f} {line['p50']:>9.1f} {line['p99']:>9.1f}", flush=True)
        found.append(line)
    return found


def _gone_after(site: Site) -> float:
    """Return after how many seconds the dead rows are removed, or the log is small again."""
    began = SYSTEM.monotonic()
    most = 50_000 if site.place.vendor == "postgres" else 64 * 2**20

    def is_gone() -> bool:
        seen = site.backend.storage.read()
        return (seen.dead_rows or seen.log_size or 0) <= most

    with worker(site):  # on SQLite, it is a worker that cuts the log
        until(is_gone, "what was kept is gone", pause=1.0, patience=FORGOTTEN_WITHIN)
    seconds = SYSTEM.monotonic() - began
    print(f"gone after {seconds:.0f} s")
    return seconds


if __name__ == "__main__":
    main()
