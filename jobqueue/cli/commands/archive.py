"""``archive``: searches the pruned jobs that rules archived, and packs them into one file for each day and status."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from itertools import islice
from typing import Any

from jobqueue import retention
from jobqueue.archive.pack import lines, pack
from jobqueue.archive.place import Place, place_of
from jobqueue.cli.arguments import Subcommand
from jobqueue.cli.console import Console
from jobqueue.cli.exits import OK, WARNING, failure
from jobqueue.cli.values import counted

COLUMNS = ("id", "type", "queue", "status", "completed_at", "error")


def _add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=["search", "pack"], help="Search the archive, or pack its parts.")
    parser.add_argument("text", nargs="?", default="", help="An id, or any text in the row of a job.")
    parser.add_argument("--type", metavar="TYPE", help="Only jobs of this type.")
    parser.add_argument("--limit", type=int, default=100, help="The most jobs to show (default: 100).")


def _run(options: dict[str, Any], console: Console) -> int:
    names = sorted({rule.archive for rule in retention.rules() if rule.archive})
    if not names:
        raise failure("No rule in JOBQUEUE['RETENTION'] has an 'archive'.")
    try:
        archives = {name: place_of(name) for name in names}
        if options["action"] == "pack":
            return _pack(archives, console)
        return _search([*archives.values()], options, console)
    except OSError as error:
        raise failure(f"The archive can't be read or written: {error}") from error


def _pack(archives: dict[str, Place], console: Console) -> int:
    packed = {
        f"{archive}/{day}": count
        for archive, place in archives.items()
        for day in place.days()
        if (count := pack(place, day))
    }
    if console.as_json:
        console.document({"verb": "archive", "packed": packed})
    else:
        for path, count in packed.items():
            console.line(f"{path}: {counted(count)}")
        console.say(f"{counted(len(packed), 'file')} packed.")
    return OK


def _search(places: list[Place], options: dict[str, Any], console: Console) -> int:
    found = list(islice(_found(places, options["text"], options["type"]), max(0, options["limit"])))
    if console.as_json:
        console.document({"verb": "archive", "jobs": found})
    elif found:
        console.table(COLUMNS, [[str(row.get(name) or "-") for name in COLUMNS] for row in found])
    console.say(f"{counted(len(found))} found.")
    return OK if found else WARNING


def _found(places: list[Place], text: str, kind: str | None) -> Iterator[dict[str, Any]]:
    needle = json.dumps(text)[1:-1].encode()
    for place in places:
        for day in place.days():
            for line in lines(place, day):
                if needle in line and (kind is None or json.loads(line)["type"] == kind):
                    yield json.loads(line)


ARCHIVE = Subcommand(
    "archive",
    "search the archive of pruned jobs, or pack it into one file a day",
    """\
Rules in RETENTION with an 'archive' write jobs there before they are deleted. Run "archive pack" once a day, on each
machine whose workers have a folder of their own. It can be interrupted, and repeated.

examples:
  manage.py jobqueue archive search 01KA4QXJ3N3Z7V0S7E6BHW2T9C
  manage.py jobqueue archive search order-4711 --type send_invoice --json
  manage.py jobqueue archive pack

exit codes:
  0  jobs were found; or the archive is packed
  1  no job was found
  3  no rule archives, or a file is damaged or can't be written
""",
    _add,
    _run,
)
