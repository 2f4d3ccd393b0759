"""``limits``: how many jobs of a type or queue run at once or start in a window, and setting that at run time."""

from __future__ import annotations

import argparse
import getpass
from typing import Any

from jobqueue import control
from jobqueue.backends import current
from jobqueue.cli.arguments import Subcommand
from jobqueue.cli.console import Console
from jobqueue.cli.exits import OK
from jobqueue.cli.hints import about_queue, about_type
from jobqueue.cli.values import plain
from jobqueue.errors import InvalidOption
from jobqueue.observe.limits import LimitState, limit_states
from jobqueue.policy.limits.declared_limits import Concurrency, DeclaredLimit, Rate
from jobqueue.records import Limit, LimitUse, Scope
from jobqueue.worker.start import known_queues

_COLUMNS = ("scope", "name", "key", "limit", "in_code", "in_use", "set_by", "reason")
_SHOWN = 3


def _add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", nargs="?", choices=("list", "set", "unset"), default="list", help="Default: list.")
    target = parser.add_mutually_exclusive_group()
    target.add_argument("--type", metavar="NAME", help="The limit of a job type, in all queues.")
    target.add_argument("--queue", metavar="NAME", help="The limit of a queue.")
    kind = parser.add_mutually_exclusive_group()
    number: dict[str, Any] = {"metavar": "N", "type": int, "nargs": "?", "const": 0}
    kind.add_argument("--concurrency", help="How many jobs run at once.", **number)
    kind.add_argument("--rate", help="How many attempts start in every window of --per seconds.", **number)
    parser.add_argument("--per", metavar="SECONDS", type=float, help="The length of the window of --rate.")
    parser.add_argument("--key", metavar="KEY", help="The limit of each value of a key that the code declares.")
    parser.add_argument("--reason", default="", metavar="TEXT", help="The reason, shown by list.")


def _run(options: dict[str, Any], console: Console) -> int:
    match options["action"]:
        case "set":
            return _set(options, console)
        case "unset":
            return _unset(options, console)
    return _list(options, console)


def _set(options: dict[str, Any], console: Console) -> int:
    limit = _limit(options)
    for hint in about_type(limit.name) if limit.scope is Scope.TYPE else about_queue(limit.name):
        console.say(hint, console.style.WARNING)
    control.set_limit(limit, options["reason"], _author())
    console.say(f"The {limit.scope} {limit.name} now has the limit {_words(limit)}. Running jobs continue.")
    return _told(limit, True, console)


def _unset(options: dict[str, Any], console: Console) -> int:
    limit = _limit(options, number=1)
    was_stored = control.unset_limit(limit)
    if was_stored:
        console.say(f"The stored limit of the {limit.scope} {limit.name} is gone. One in code applies again.")
    else:
        console.say(f"The {limit.scope} {limit.name} has no such stored limit; nothing was changed.")
    return _told(limit, was_stored, console)


def _told(limit: Limit, changed: bool, console: Console) -> int:
    if console.as_json:
        stored = next((one for one in current().limits.stored() if one.limit.place == limit.place), None)
        console.document({"limit": plain(limit), "changed": changed, "stored": plain(stored)})
    return OK


def _list(options: dict[str, Any], console: Console) -> int:
    backend = current()
    found = limit_states(backend, known_queues(backend))
    wanted = {one: options[one] for one in ("type", "queue") if options[one] is not None}
    found = [one for one in found if all((one.limit.scope, one.limit.name) == pair for pair in wanted.items())]
    if console.as_json:
        console.document({"limits": [plain(one) for one in found]})
    elif found:
        console.table(_COLUMNS, [_row(one) for one in found])
    else:
        console.say("There are no limits.")
    return OK


def _row(state: LimitState) -> list[str]:
    limit, stored = state.limit, state.stored
    return [
        limit.scope.value,
        limit.name,
        limit.key or "-",
        _words(limit),
        "-" if state.in_code is None else f"{state.in_code:,}",
        ", ".join(map(_use, state.uses[:_SHOWN])) or "0",
        "-" if stored is None else stored.author or "unknown",
        stored.reason if stored else "",
    ]


def _use(use: LimitUse) -> str:
    return f"{use.value}: {use.used:,}" if use.limit.key else f"{use.used:,}"


def _words(limit: Limit) -> str:
    return f"{limit.number:,} in {limit.per:g} s" if limit.per else f"{limit.number:,} at once"


def _limit(options: dict[str, Any], number: int | None = None) -> Limit:
    """Return the limit that the options name. Raise InvalidOption if they don't name one."""
    scope = Scope.TYPE if options["type"] is not None else Scope.QUEUE
    name = options[scope.value]
    if name is None:
        raise InvalidOption("--type or --queue", "is needed to name the limit")
    if options["rate"] is None and options["concurrency"] is None:
        raise InvalidOption("--concurrency or --rate", "is needed to name the limit")
    declared: DeclaredLimit
    if options["rate"] is not None:
        if options["per"] is None:
            raise InvalidOption("--per", "is needed with --rate: the length of its window in seconds")
        declared = Rate(number or options["rate"], per=options["per"], key=options["key"])
    else:
        declared = Concurrency(number or options["concurrency"], key=options["key"])
    return declared.of(scope, name)


def _author() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a user id without a name
        return ""


LIMITS = Subcommand(
    "limits",
    "show the limits of types and queues, or change them while workers run",
    """\
examples:
  manage.py jobqueue limits
  manage.py jobqueue limits set --type sync_account --concurrency 2 --reason "the provider is slow"
  manage.py jobqueue limits set --queue mail --rate 100 --per 60
  manage.py jobqueue limits unset --type sync_account --concurrency

exit codes:
  0  done, or nothing had to change
  2  invalid arguments
  3  nothing was changed
""",
    _add,
    _run,
)
