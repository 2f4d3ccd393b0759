"""``retry``, ``retry-all``, ``cancel`` and ``purge``: many jobs, by id or, after a confirmation, by filter."""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from jobqueue import control
from jobqueue.backends import current
from jobqueue.cli.arguments import Subcommand, add_filters, number, read_filter
from jobqueue.cli.console import Console
from jobqueue.cli.exits import OK, WARNING, failure
from jobqueue.cli.hints import about_filter
from jobqueue.cli.values import counted
from jobqueue.records import Filter, Handled

IDS_SHOWN = 5


@dataclass(frozen=True, slots=True)
class BulkCommand:
    """One of the commands: its functions for ids and for filters, and its texts."""

    name: str
    past: str
    by_id: Callable[..., Handled]
    matching: Callable[..., Handled]
    narrow: Callable[[Filter], Filter]
    asks_for_ids: bool = False


_RETRY = BulkCommand("retry", "retried", control.retry, control.retry_matching, control.retriable)
_CANCEL = BulkCommand("cancel", "cancelled", control.cancel, control.cancel_matching, control.cancellable)
_PURGE = BulkCommand("purge", "purged", control.purge, control.purge_matching, control.purgeable, asks_for_ids=True)


def _add_ids(parser: argparse.ArgumentParser, count: str) -> None:
    parser.add_argument("ids", nargs=count, metavar="ID", help="The ids of jobs.")


def _add_care(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--yes", action="store_true", help="Do not ask for confirmation.")
    parser.add_argument("--dry-run", action="store_true", help="Only show how many jobs would be changed.")


def _add_bulk(parser: argparse.ArgumentParser) -> None:
    add_filters(parser)
    parser.add_argument("--limit", type=number, metavar="N", help="Change at most N jobs, in order of id.")
    _add_care(parser)


def _add_retry(parser: argparse.ArgumentParser) -> None:
    _add_ids(parser, "+")


def _add_ids_or_filters(parser: argparse.ArgumentParser) -> None:
    _add_ids(parser, "*")
    parser.add_argument("--all", action="store_true", help="Select all jobs; needed if no id and no filter is given.")
    _add_bulk(parser)


def _run_of(verb: BulkCommand, *, needs_filter: bool) -> Callable[[dict[str, Any], Console], int]:
    def run(options: dict[str, Any], console: Console) -> int:
        wanted = read_filter(options)
        ids = options.get("ids", [])
        filtered = wanted != Filter() or bool(options.get("all")) or options["limit"] is not None
        if ids and filtered:
            raise failure(f"{verb.name} takes either ids or filters, not both. Nothing was changed.")
        if ids:
            return _by_id(verb, ids, options, console)
        if needs_filter and wanted == Filter() and not options["all"]:
            raise failure(f"{verb.name} needs ids, filters or --all. Nothing was changed.")
        return _by_filter(verb, verb.narrow(wanted), options, console)

    return run


def _by_id(verb: BulkCommand, ids: list[str], options: dict[str, Any], console: Console) -> int:
    if options.get("dry_run"):
        return _tell_plan(verb, len(set(ids)), console)
    if verb.asks_for_ids and not options["yes"] and not console.agrees(_question(verb, len(set(ids)))):
        return _tell_nothing(verb, console, "Nothing was changed.")
    return _tell(verb, verb.by_id(ids, lambda done: console.progress(done, len(set(ids)))), console)


def _by_filter(verb: BulkCommand, wanted: Filter, options: dict[str, Any], console: Console) -> int:
    total = current().jobs.count(wanted, options["limit"])
    if options["dry_run"]:
        return _tell_plan(verb, total, console)
    if not total:
        _tell_nothing(verb, console, "No job matches.", *about_filter(wanted))
        return OK
    if not options["yes"] and not console.agrees(_question(verb, total)):
        return _tell_nothing(verb, console, "Nothing was changed.")
    # At most as many jobs as the user agreed to, even if more have been added.
    return _tell(verb, verb.matching(wanted, total, lambda done: console.progress(done, total)), console)


def _question(verb: BulkCommand, count: int) -> str:
    return f"{verb.name.capitalize()} {counted(count)}{' with history' if verb.name == 'purge' else ''}?"


def _tell_plan(verb: BulkCommand, count: int, console: Console) -> int:
    if console.as_json:
        console.document({"verb": verb.name, "dry_run": True, "matching": count})
    else:
        console.line(f"{counted(count)} would be {verb.past}.")
    return OK if count else WARNING


def _tell_nothing(verb: BulkCommand, console: Console, *why: str) -> int:
    if console.as_json:
        console.document(_document(verb, Handled()))
    for one in why:
        console.say(one)
    return WARNING


def _tell(verb: BulkCommand, handled: Handled, console: Console) -> int:
    if console.as_json:
        console.document(_document(verb, handled))
    else:
        console.line(_outcome(verb, handled), console.style.SUCCESS if handled.done else None)
    reasons: dict[str, list[str]] = defaultdict(list)
    for refusal in handled.refused:
        reasons[refusal.reason].append(refusal.id)
    for reason, ids in reasons.items():
        some = ", ".join(ids[:IDS_SHOWN]) + (", …" if len(ids) > IDS_SHOWN else "")
        console.say(f"{counted(len(ids))} refused: {reason} ({some})", console.style.WARNING)
    return WARNING if handled.refused else OK


def _outcome(verb: BulkCommand, handled: Handled) -> str:
    """Sum up the outcome. Running jobs are counted apart: they are only asked to stop, and may still complete."""
    asked, ended = len(handled.asked), len(handled.done) - len(handled.asked)
    told = f"{counted(ended)} {verb.past}" if ended or not asked else ""
    return ", ".join(filter(None, (told, f"{counted(asked, 'running job')} asked to stop" if asked else ""))) + "."


def _document(verb: BulkCommand, handled: Handled) -> dict[str, Any]:
    refused = [{"id": one.id, "reason": one.reason} for one in handled.refused]
    made = {"verb": verb.name, "dry_run": False, "done": handled.done, "refused": refused}
    return made | ({"asked": handled.asked} if verb is _CANCEL else {})


def _retry(options: dict[str, Any], console: Console) -> int:
    return _by_id(_RETRY, options["ids"], options, console)


_CODES = """\
exit codes:
  0  done, or no job matched
  1  some jobs were refused, or the answer was no; with --dry-run: no job matched
  2  invalid arguments
  3  nothing was changed; without --yes also if stdin is not a terminal
"""

RETRY = Subcommand(
    "retry",
    "queue failed jobs and dead letters again, with all their attempts",
    f"""\
examples:
  manage.py jobqueue retry 01J8ZQ4Y3M6V7K2N5P8R1T4W6X
  manage.py jobqueue retry-all --type send_welcome

{_CODES}""",
    _add_retry,
    _retry,
)

RETRY_ALL = Subcommand(
    "retry-all",
    "retry all dead letters that match the filters",
    f"""\
Only dead letters are retried, unless --status is given. Cancelled jobs are failed, and stay failed.

examples:
  manage.py jobqueue retry-all --error "connection refused" --dry-run
  manage.py jobqueue retry-all --type send_welcome --yes
  manage.py jobqueue retry-all --status failed --status dead_letter --created-after 2h

{_CODES}""",
    _add_bulk,
    _run_of(_RETRY, needs_filter=False),
)

CANCEL = Subcommand(
    "cancel",
    "end queued jobs as failed, and ask running ones to stop",
    f"""\
examples:
  manage.py jobqueue cancel 01J8ZQ4Y3M6V7K2N5P8R1T4W6X
  manage.py jobqueue cancel --queue mail --status queued
  manage.py jobqueue cancel --all --dry-run

{_CODES}""",
    _add_ids_or_filters,
    _run_of(_CANCEL, needs_filter=True),
)

PURGE = Subcommand(
    "purge",
    "delete jobs and their history; this cannot be undone",
    f"""\
A filter selects jobs that have ended; queued jobs only with --status queued. Running jobs are never deleted.

examples:
  manage.py jobqueue purge 01J8ZQ4Y3M6V7K2N5P8R1T4W6X
  manage.py jobqueue purge --status completed --older-than 30d --yes
  manage.py jobqueue purge --all --dry-run

{_CODES}""",
    _add_ids_or_filters,
    _run_of(_PURGE, needs_filter=True),
)
