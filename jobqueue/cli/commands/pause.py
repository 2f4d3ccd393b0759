"""``pause`` and ``resume``: workers take no jobs from a paused queue or of a paused type."""

from __future__ import annotations

import argparse
from typing import Any

from jobqueue import control
from jobqueue.backends import current
from jobqueue.cli.arguments import Subcommand
from jobqueue.cli.console import Console
from jobqueue.cli.exits import OK
from jobqueue.cli.hints import about_queue, about_type
from jobqueue.cli.values import plain
from jobqueue.policy.nearest import did_you_mean
from jobqueue.records import Scope


def _add_target(parser: argparse.ArgumentParser, verb: str) -> None:
    target = parser.add_mutually_exclusive_group(required=True)
    target.add_argument("--queue", metavar="NAME", help=f"{verb} a queue.")
    target.add_argument("--type", metavar="NAME", help=f"{verb} a job type, in all queues.")


def _add_pause(parser: argparse.ArgumentParser) -> None:
    _add_target(parser, "Pause")
    parser.add_argument("--reason", default="", metavar="TEXT", help="The reason, shown by status and why.")


def _add_resume(parser: argparse.ArgumentParser) -> None:
    _add_target(parser, "Resume")


def _target(options: dict[str, Any]) -> tuple[Scope, str]:
    scope = Scope.TYPE if options["type"] is not None else Scope.QUEUE
    return scope, options[scope.value]


def _pause(options: dict[str, Any], console: Console) -> int:
    scope, name = _target(options)
    hints = list(
        about_type(name) if scope is Scope.TYPE else about_queue(name)
    )  # before the pause, which makes a queue known
    changed = control.pause(scope, name, options["reason"])
    if changed:
        console.say(f"The {scope} {name} is paused. Running jobs continue, and no more are taken.")
    else:
        console.say(f"The {scope} {name} was already paused, and keeps its first reason.")
    for hint in hints:
        console.say(hint, console.style.WARNING)
    _tell(scope, name, changed, console)
    return OK


def _resume(options: dict[str, Any], console: Console) -> int:
    scope, name = _target(options)
    changed = control.resume(scope, name)
    console.say(f"The {scope} {name} is resumed." if changed else f"The {scope} {name} was not paused.")
    paused = [one.name for one in current().operator.pauses() if one.scope == scope]
    if paused and not changed:
        console.say(did_you_mean(name, paused, f"These are paused: {', '.join(paused)}."))
    _tell(scope, name, changed, console)
    return OK


def _tell(scope: Scope, name: str, changed: bool, console: Console) -> None:
    if console.as_json:
        now = next((one for one in current().operator.pauses() if (one.scope, one.name) == (scope, name)), None)
        console.document({"scope": scope.value, "name": name, "changed": changed, "pause": plain(now)})


_CODES = """\
exit codes:
  0  done, or nothing had to change
  2  invalid arguments
  3  nothing was changed
"""

PAUSE = Subcommand(
    "pause",
    "stop workers from taking jobs from a queue or of a type",
    f"""\
examples:
  manage.py jobqueue pause --queue mail --reason "the provider is down"
  manage.py jobqueue pause --type resize_image

{_CODES}""",
    _add_pause,
    _pause,
)

RESUME = Subcommand(
    "resume",
    "let workers take jobs from a paused queue or of a paused type again",
    f"""\
examples:
  manage.py jobqueue resume --queue mail
  manage.py jobqueue resume --type resize_image

{_CODES}""",
    _add_resume,
    _resume,
)
