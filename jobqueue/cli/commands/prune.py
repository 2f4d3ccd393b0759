"""``prune``: deletes the jobs that the rules of retention don't keep, now instead of step by step in a worker."""

from __future__ import annotations

import argparse
import time
from typing import Any

from jobqueue import retention
from jobqueue.backends import current
from jobqueue.cli.arguments import Subcommand
from jobqueue.cli.console import Console
from jobqueue.cli.exits import OK, failure
from jobqueue.cli.values import counted
from jobqueue.clock import SYSTEM
from jobqueue.retention.walk import Walk

COLUMNS = ("status", "type", "queue", "jobs")


def _add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--dry-run", action="store_true", help="Only show how many jobs would be deleted.")


def _run(options: dict[str, Any], console: Console) -> int:
    dry_run = options["dry_run"]
    walk = Walk(current(), retention.rules(), dry_run=dry_run)
    try:
        while not walk.is_over:
            began = SYSTEM.monotonic()
            if walk.step():
                time.sleep(SYSTEM.monotonic() - began)  # others write as often as this command
    except OSError as error:
        raise failure(f"Jobs can't be archived, so they stay: {error}") from error
    count = sum(walk.pruned.values())
    if console.as_json:
        groups = [{**group._asdict(), "jobs": jobs} for group, jobs in sorted(walk.pruned.items())]
        console.document({"verb": "prune", "dry_run": dry_run, "jobs": count, "groups": groups})
        return OK
    if count:
        console.table(COLUMNS, [[*group, f"{jobs:,}"] for group, jobs in sorted(walk.pruned.items())])
    console.say(f"{counted(count)} {'would be' if dry_run else 'were'} deleted.")
    return OK


PRUNE = Subcommand(
    "prune",
    "delete the jobs that the rules of retention don't keep",
    """\
The setting RETENTION has the rules. Workers apply them all the time, so you need this command only if no worker runs
for long, or to see what a new rule would delete. Workers can run meanwhile: no job is counted by both.

examples:
  manage.py jobqueue prune --dry-run
  manage.py jobqueue prune --dry-run --json | jq '.groups[]'

exit codes:
  0  done
  3  the setting is invalid, or the jobs can't be read or deleted; what was deleted stays deleted
""",
    _add,
    _run,
)
