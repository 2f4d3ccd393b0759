"""The command: ``python -m benchmarks.faults``."""

from __future__ import annotations

import argparse
import platform
import secrets
import signal
import sqlite3
import sys
from collections.abc import Sequence
from pathlib import Path

import django

from benchmarks.databases import TRIED, VARIABLE
from benchmarks.faults.catalogue import catalogue
from benchmarks.faults.laboratory import Trial
from benchmarks.faults.report import HEADINGS, Report, cells
from benchmarks.faults.trials import QUICK_SECONDS, chosen, try_out
from benchmarks.faults.verdict import Outcome, Verdict

_ABOUT = """\
Break things under load, and account for every job: real worker and producer processes, a SQLite file and a Postgres of
their own, and a ledger outside the database in which producers and handlers write down what they did. After each fault
the queue must drain by itself; then the ledger is compared with the table. No accepted job may be lost, no run that has
lost its claim may change its job, and no job may run twice at once in processes that never stood still.
"""
EPILOG = f"""\
Only processes that the run has started are killed, and only databases that it has made are harmed: a SQLite file in the
folder for temporary files (TMPDIR names another), a database of the Postgres named by {VARIABLE} (unless set,
the first that answers of {" and ".join(map(repr, TRIED))}), and, where a server has to be stopped, one of the
run's own. The same seed gives the same dice; what the machine makes of them is never quite the same.

exit codes: 0 all that was run held; 1 something is broken; 2 the command could not be read.
A fault that this machine cannot inject is reported as not run, and is no failure.
"""


def arguments(given: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.faults",
        description=_ABOUT,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--list", action="store_true", help="list the faults, and whether this machine can inject them")
    parser.add_argument(
        "--only", action="append", choices=list(catalogue()), metavar="T01", help="one fault; may be repeated"
    )
    parser.add_argument(
        "--database", choices=["sqlite", "postgres", "both"], default="both", help="where to try (default: both)"
    )
    parser.add_argument(
        "--minutes", type=float, default=60.0, metavar="N", help="inject for so long in all (default: %(default)g)"
    )
    parser.add_argument("--seed", default=secrets.token_hex(4), metavar="S", help="the dice (default: drawn, and told)")
    parser.add_argument(
        "--quick", action="store_true", help="some seconds for each fault, with short leases: to see that it works"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write everything to FILE as JSON")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="also write the report to FILE")
    parser.add_argument(
        "--evidence", type=Path, metavar="FOLDER", help="keep the ledgers and logs of what was broken in FOLDER"
    )
    return parser.parse_args(given)


def listing() -> str:
    """Return the catalogue as text."""
    lines = []
    for one in catalogue().values():
        lines.append(f"{one.id:5} {one.title} ({', '.join(one.databases)})")
        lines.append(f"      {one.about}")
        reasons = {database: one.why_not(database) for database in one.databases}
        lines += [f"      NOT HERE on {database}: {why}" for database, why in reasons.items() if why]
    return "\n".join(lines)


def facts(options: argparse.Namespace) -> dict[str, str]:
    """Return the conditions of the run."""
    return {
        "Python": platform.python_version(),
        "Django": django.get_version(),
        "SQLite": sqlite3.sqlite_version,
        "Linux": platform.release(),
        "seed": options.seed,
    }


def run(options: argparse.Namespace) -> int:
    """Try all requested faults, and report. Return the exit status."""
    pairs = list(chosen(options.only or (), options.database))
    seconds = QUICK_SECONDS if options.quick else 60 * options.minutes / max(1, len(pairs))
    print(f"Seed {options.seed}; {len(pairs)} trials of {seconds:.0f} s each, and their drains.", flush=True)
    verdicts: list[Verdict] = []
    for number, database in pairs:
        trial = Trial(fault=number, database=database, seconds=seconds, seed=options.seed, quick=options.quick)
        verdicts.append(try_out(trial, options.evidence))
        print(_line(verdicts[-1]), flush=True)
    report = Report(verdicts, facts(options))
    print(f"\n{report.markdown()}")
    if options.json:
        report.write_json(options.json)
    if options.markdown:
        options.markdown.write_text(report.markdown(), encoding="utf-8")
    return 1 if any(one.outcome is Outcome.BROKEN for one in verdicts) else 0


def _line(verdict: Verdict) -> str:
    """Return the result of a trial in one line."""
    name, database, outcome, *rest = cells(verdict)
    if verdict.outcome is Outcome.NOT_RUN:
        return f"{name} on {database}: {outcome}: {'; '.join(verdict.why)}"
    named = [f"{heading} {cell}" for heading, cell in zip(HEADINGS[3:], rest, strict=True) if cell not in ("-", "0")]
    return f"{name} on {database}: {outcome}; {', '.join(named)}"


def _end(*_: object) -> None:
    raise SystemExit(143)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, _end)  # so that processes are ended and files removed
    chosen_options = arguments()
    if chosen_options.list:
        print(listing())
        sys.exit()
    sys.exit(run(chosen_options))
