"""The command: ``python -m benchmarks``."""

from __future__ import annotations

import argparse
import inspect
import json
import math
import platform
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict
from pathlib import Path

import django

from benchmarks import report
from benchmarks.calibration import calibrate
from benchmarks.children import child
from benchmarks.databases import TRIED, VARIABLE, NoPostgres, Place, postgres_place, sqlite_place
from benchmarks.peers.catalogue import PEERS
from benchmarks.peers.comparison import compare
from benchmarks.peers.environments import default_folder
from benchmarks.peers.redis import TRIED as REDIS_TRIED
from benchmarks.peers.redis import VARIABLE as REDIS_VARIABLE
from benchmarks.vendor import BY_NAME_ALONE, MEASURES, Measure

_ABOUT = """\
Measure the queue on this machine, beside the bare SQL that a queue written by hand would send through the driver to
the same table. Both take turns within the same minute, so that their ratio means something where the machine is busy.
With --peers, other queues take turns with it: the measures are then left out, except those that --only names. Only so
runs what takes long: {by_name}.
""".format(by_name=", ".join(sorted(BY_NAME_ALONE)))


def _described(measures: Mapping[str, Measure]) -> str:
    """Return the names of the measurements with the first lines of their docstrings."""
    longest = max(map(len, measures))
    lines = [f"  {name.ljust(longest)}  {_first_line(measure)}" for name, measure in measures.items()]
    return "\n".join([_ABOUT, "measures:", *lines, "", "peers:", f"  {', '.join(PEERS)}"])


def _first_line(measure: Measure) -> str:
    return (inspect.getdoc(measure) or "").partition("\n")[0]


EPILOG = f"""\
Everything happens in databases that are made for the run and dropped after it: a SQLite file in the folder for
temporary files (TMPDIR names another; on a memory disk nothing is ever synced), and a Postgres database. The server is
that of the connection string in {VARIABLE}, or the first that answers of:
{"".join(f'  "{conninfo}"{chr(10)}' for conninfo in TRIED)}
The role must be allowed to create databases. Peers that keep their jobs in Redis do so in one of its databases that is
empty, of the server at the address in {REDIS_VARIABLE} ({REDIS_TRIED} unless set).
A full run takes some minutes and 1 GB of disk; the peers take some twenty-five, and the first time as long as their
installation does. The measure of the admin takes some twenty minutes more, and 8 GB of disk; that of the example's
capture view some six, and gunicorn, which the extra "test" brings.
"""


def arguments(given: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=_described(MEASURES),
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--database", choices=["sqlite", "postgres", "both"], default="both", help="which to measure (default: both)"
    )
    parser.add_argument(
        "--only", action="append", choices=list(MEASURES), metavar="NAME", help="one measure; may be repeated"
    )
    parser.add_argument(
        "--peers",
        nargs="?",
        type=_peers,
        const=frozenset(PEERS),
        metavar="NAME,NAME",
        help="compare with other queues: those named, or all",
    )
    parser.add_argument(
        "--environments",
        type=Path,
        metavar="FOLDER",
        default=default_folder(),
        help="where the peers are installed, each in an environment of its own (default: %(default)s)",
    )
    parser.add_argument(
        "--minutes",
        type=float,
        default=math.inf,
        metavar="N",
        help="begin no further round of the comparison after so many minutes (default: all three rounds)",
    )
    parser.add_argument("--quick", action="store_true", help="a short run with small tables: to see that it works")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write everything to FILE as JSON")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="also write the tables to FILE")
    parser.add_argument("--chart", type=Path, metavar="FILE", help="draw the comparison with the peers as SVG")
    return parser.parse_args(given)


def _peers(names: str) -> frozenset[str]:
    named = frozenset(names.split(","))
    if unknown := named - PEERS.keys():
        raise argparse.ArgumentTypeError(f"unknown: {', '.join(sorted(unknown))}; there are {', '.join(PEERS)}")
    return named


def places(database: str) -> Iterator[AbstractContextManager[Place]]:
    """Yield the places to measure. Entering one creates it."""
    if database in ("sqlite", "both"):
        yield sqlite_place()
    if database in ("postgres", "both"):
        yield postgres_place()


class Run:
    """One run of the command, with its figures."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        usual = [name for name in MEASURES if name not in BY_NAME_ALONE]
        self.measures = options.only or ([] if options.peers else usual)
        self.versions: dict[str, str] = {
            "python": platform.python_version(),
            "django": django.get_version(),
        }
        self.figures: list[report.Figure] = []
        self.failures: list[str] = []
        self.not_run: list[str] = []
        self._said: list[str] = []

    def __call__(self) -> int:
        """Measure, compare and report. Return the exit status."""
        calibration = calibrate()
        self._say(
            f"Calibration: a ULID takes {calibration['ulid_us']:.2f} µs, "
            f"an fdatasync {calibration['fdatasync_p50_us']:.0f} µs (p50).\n"
        )
        if self.measures:
            self._measure_all()
        compared = self._compare() if self.options.peers else {}
        self._say(", ".join(f"{name} {version}" for name, version in self.versions.items()))
        for why in [*self.not_run, *self.failures]:
            print(f"\n!!! {why}", file=sys.stderr)
        facts = {"calibration": calibration, "versions": self.versions, "not_run": self.not_run, **compared}
        self._write(facts)
        return 1 if self.failures or (self.not_run and self.options.database == "postgres") else 0

    def _say(self, text: str) -> None:
        """Print a text, and keep it for the file."""
        print(text, flush=True)
        self._said.append(text)

    def _write(self, facts: dict[str, object]) -> None:
        if self.options.json:
            report.write_json(self.options.json, facts, self.figures)
        if self.options.markdown:
            self.options.markdown.write_text("\n".join(self._said) + "\n", encoding="utf-8")

    def _measure_all(self) -> None:
        self._say(report.head())
        self.not_run += [why for why in map(self._measure, places(self.options.database)) if why]
        self._say(f"\n{report.LEGEND}\n")

    def _compare(self) -> dict[str, object]:
        """Compare with the peers, in turns."""
        options = self.options
        comparison = compare(
            options.peers, options.database, options.environments, quick=options.quick, minutes=options.minutes
        )
        for part in comparison.parts():
            self._say(f"{part}\n")
        if options.chart:
            comparison.draw(options.chart)
        self.failures += comparison.failures()
        return {"peers": comparison.as_json()}

    def _measure(self, making: AbstractContextManager[Place]) -> str | None:
        """Measure one vendor. Return why not, if that is impossible."""
        try:
            with making as place:
                self._take_figures(place)
        except NoPostgres as error:
            return f"POSTGRES WAS NOT RUN: {error}."
        return None

    def _take_figures(self, place: Place) -> None:
        """Measure in a process of its own, because Django's settings are per process."""
        asked = {"place": asdict(place), "measures": self.measures, "quick": self.options.quick}
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
            self._say(report.line(self.figures[-1].cells()))


def _end(*_: object) -> None:
    raise SystemExit(143)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, _end)  # so that the databases are dropped
    sys.exit(Run(arguments())())
