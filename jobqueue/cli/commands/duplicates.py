"""``duplicates``: queued jobs with the same payload."""

from __future__ import annotations

import argparse
from typing import Any

from jobqueue.backends import current
from jobqueue.cli.arguments import Subcommand, number
from jobqueue.cli.console import Console
from jobqueue.cli.exits import OK, WARNING
from jobqueue.cli.values import ago, counted, plain
from jobqueue.observe.questions.duplicates import duplicates

_COLUMNS = ("type", "queue", "tenant", "jobs", "oldest", "ids")


def _add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--limit", type=number, default=20, metavar="N", help="Show the N largest groups. Default: 20.")


def _run(options: dict[str, Any], console: Console) -> int:
    backend = current()
    found = duplicates(backend, options["limit"])
    if console.as_json:
        groups = [plain(one) for one in found.groups]
        console.document({"groups": groups, "looked_at": found.looked_at, "is_part": found.is_part})
    else:
        if found.groups:
            now = backend.now()
            rows = [
                [one.type, one.queue, one.tenant or "-", f"{one.jobs:,}", ago(one.since, now), ", ".join(one.examples)]
                for one in found.groups
            ]
            console.table(_COLUMNS, rows)
        looked_at = counted(found.looked_at, "queued job", capped=found.is_part)
        console.say(f"{looked_at} looked at; {len(found.groups):,} payloads are there more than once.")
    return WARNING if found.groups else OK


DUPLICATES = Subcommand(
    "duplicates",
    "show queued jobs of one type with the same payload",
    """\
Two jobs never have the same idempotency key, and two queued or running jobs never have the same unique key: the
database refuses them. So this command looks for jobs that were enqueued twice without a key. It compares the jobs that
are due first: up to 500 of each queue and type, and about 3,000 in all. To keep such jobs out, enqueue them with a
unique key.

examples:
  manage.py jobqueue duplicates
  manage.py jobqueue duplicates --json | jq '.groups[].examples'

exit codes:
  0  no payload is there more than once
  1  some are
  3  the jobs can't be read
""",
    _add,
    _run,
)
