"""The command: ``python -m benchmarks``."""

from __future__ import annotations

import argparse
import json
import platform
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict
from pathlib import Path

import django

from benchmarks import report
from benchmarks.calibration import calibrate
from benchmarks.children import child
from benchmarks.databases import TRIED, VARIABLE, NoPostgres, Place, postgres_place, sqlite_place
from benchmarks.vendor import MEASURES

DESCRIPTION = """\
Measure the queue on this machine, beside the bare SQL that a queue written by hand would send through the driver to
the same table. Both take turns within the same minute, so that their ratio means something where the machine is busy.

measures:
  enqueue  one by one through the public API: pydantic validation, an idempotency key, a commit each
  bulk     enqueue_many of 1,000 jobs; beside it executemany in one transaction
  cycle    settle and claim by 50 through the backend's own verb, draining 20,000 jobs
  claim    what a claim of 1 and of 50 costs with 1,000 to 1,000,000 jobs in the table, and with 1,000,000 jobs in its
           way (future ones, of a type nobody knows, in a paused queue); on a table never analysed, and after ANALYZE
  wake     from a wake-up after a commit to the waiting process that heard it
  drain    the whole worker: 20,000 no-op jobs by one executor with 10 and 50 slots
  pickup   from a commit to the handler's first line in an idle worker; and what an idle worker costs
  renewal  how late leases are renewed beside a handler that holds the GIL for seconds
  crash    from kill -9 of an executor to its jobs given back
  memory   what supervisor, zygote and one executor take
"""
EPILOG = f"""\
Everything happens in databases that are made for the run and dropped after it: a SQLite file in the folder for
temporary files (TMPDIR names another; on a memory disk nothing is ever synced), and a Postgres database. The server is
that of the connection string in {VARIABLE}, or the first that answers of:
{"".join(f'  "{conninfo}"{chr(10)}' for conninfo in TRIED)}
The role must be allowed to create databases. A full run takes some minutes and 1 GB of disk.
"""


def arguments(given: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--database", choices=["sqlite", "postgres", "both"], default="both", help="which to measure (default: both)"
    )
    parser.add_argument(
        "--only", action="append", choices=list(MEASURES), metavar="NAME", help="one measure; may be repeated"
    )
    parser.add_argument("--quick", action="store_true", help="a short run with small tables: to see that it works")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write everything to FILE as JSON")
    return parser.parse_args(given)


def places(database: str) -> Iterator[AbstractContextManager[Place]]:
    """Yield the places to measure, not made yet."""
    if database in ("sqlite", "both"):
        yield sqlite_place()
    if database in ("postgres", "both"):
        yield postgres_place()


class Run:
    """One run of the command, and what it has found so far."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.versions: dict[str, str] = {
            "python": platform.python_version(),
            "django": django.get_version(),
        }
        self.figures: list[report.Figure] = []
        self.failures: list[str] = []

    def __call__(self) -> int:
        """Measure and report; return the exit status."""
        calibration = calibrate()
        print(
            f"Calibration: a ULID takes {calibration['ulid_us']:.2f} µs, "
            f"an fdatasync {calibration['fdatasync_p50_us']:.0f} µs (p50).\n\n{report.head()}",
            flush=True,
        )
        not_run = [why for why in map(self._measure, places(self.options.database)) if why]
        print(f"\n{report.LEGEND}")
        print(", ".join(f"{name} {version}" for name, version in self.versions.items()))
        for why in [*not_run, *self.failures]:
            print(f"\n!!! {why}", file=sys.stderr)
        if self.options.json:
            facts = {"calibration": calibration, "versions": self.versions, "not_run": not_run}
            report.write_json(self.options.json, facts, self.figures)
        return 1 if self.failures or (not_run and self.options.database == "postgres") else 0

    def _measure(self, making: AbstractContextManager[Place]) -> str | None:
        """Measure one vendor; return why not, if it cannot be."""
        try:
            with making as place:
                self._take_figures(place)
        except NoPostgres as error:
            return f"POSTGRES WAS NOT RUN: {error}."
        return None

    def _take_figures(self, place: Place) -> None:
        """Have a process of its own measure: Django's settings are one per process."""
        asked = {"place": asdict(place), "measures": self.options.only or list(MEASURES), "quick": self.options.quick}
        with child("benchmarks.vendor", asked=asked) as measuring:
            for answer in map(json.loads, measuring.answers):
                self._note(place.vendor, answer)
            status = measuring.status()
        if status:
            self.failures.append(f"{place.vendor.upper()} IS INCOMPLETE: its process ended with {status}.")

    def _note(self, vendor: str, answer: dict[str, object]) -> None:
        if "version" in answer:
            self.versions[vendor] = str(answer["version"])
        else:
            self.figures.append(report.Figure.of(answer["figure"]))  # type: ignore[arg-type]
            print(report.line(self.figures[-1].cells()), flush=True)


def _end(*_: object) -> None:
    raise SystemExit(143)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, _end)  # so that the databases are dropped
    sys.exit(Run(arguments())())
