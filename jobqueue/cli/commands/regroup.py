"""``regroup``: dead letters grouped again by the current rule."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

from jobqueue.backends import current
from jobqueue.cli.arguments import Subcommand
from jobqueue.cli.console import Console
from jobqueue.cli.exits import OK
from jobqueue.cli.values import counted
from jobqueue.control import BATCH
from jobqueue.records import Filter
from jobqueue.states import JobStatus


def _add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--type", metavar="TYPE", help="Only dead letters of this job type.")
    parser.add_argument("--dry-run", action="store_true", help="Only show how many dead letters would change.")


def _run(options: dict[str, Any], console: Console) -> int:
    types = frozenset({options["type"]} - {None})
    wanted = Filter(statuses=frozenset({JobStatus.DEAD_LETTER}), types=types)
    backend, dry_run, seen, changed = current(), options["dry_run"], 0, 0
    total = backend.jobs.count(wanted)
    for ids, moved in _moved(wanted):
        changed += len(moved) if dry_run or not moved else len(backend.operator.regroup(moved))
        seen += len(ids)
        console.progress(seen, max(total, seen))
    if console.as_json:
        console.document({"verb": "regroup", "dry_run": dry_run, "dead_letters": seen, "regrouped": changed})
    else:
        said = "would be" if dry_run else "were"
        console.line(f"{changed:,} of {counted(seen, 'dead letter')} {said} put into another group.")
    return OK


def _moved(wanted: Filter) -> Iterator[tuple[list[str], dict[str, str]]]:
    """Find one batch of ids after another, with the new fingerprints of those whose group changes."""
    backend, last = current(), None
    while ids := backend.jobs.find_ids(wanted, BATCH, last):
        yield ids, backend.errors.outdated(ids)
        last = ids[-1]


REGROUP = Subcommand(
    "regroup",
    "group dead letters by the current rule",
    """\
Run it after an update whose release notes say that the rule has changed. Until then, new dead letters are in other
groups than old ones with the same error. Workers can run meanwhile. Nothing but the groups changes.

examples:
  manage.py jobqueue regroup --dry-run
  manage.py jobqueue regroup --type send_welcome

exit codes:
  0  done
  3  the jobs can't be read or changed; the batches before stay changed
""",
    _add,
    _run,
)
