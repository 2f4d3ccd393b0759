"""``schedules``: lists and shows schedules, and changes what operators may."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from django.core.management.base import CommandError

from jobqueue.backends import current
from jobqueue.cli.arguments import Subcommand, number
from jobqueue.cli.console import Console
from jobqueue.cli.exits import ERROR, OK, WARNING, failure
from jobqueue.cli.values import ago, plain
from jobqueue.errors import JobQueueError
from jobqueue.policy.schedules.rule import zone_of
from jobqueue.records.schedule import Origin, ScheduleRecord
from jobqueue.schedules import operation, summary
from jobqueue.schedules.summary import ScheduleState
from jobqueue.schedules.sync import reset, sync

COLUMNS = ("name", "state", "rule", "zone", "type", "next", "last_slot", "runs")
_WORRYING = (ScheduleState.TROUBLE, ScheduleState.UNKNOWN_TYPE, ScheduleState.LEFT_CODE)


def _add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", nargs="?", choices=["list", *_ACTIONS], default="list", help="By default, list.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="The names or ids of schedules.")
    parser.add_argument("--reason", default="", metavar="TEXT", help="The reason of a pause.")
    parser.add_argument("--count", type=number, default=10, metavar="N", help="How many slots next lists. Default: 10.")
    parser.add_argument("--left", action="store_true", help="remove: all schedules that left the code.")


def _run(options: dict[str, Any], console: Console) -> int:
    action, names = options["action"], options["names"]
    if action == "list":
        return _list(console)
    if action == "sync":
        return _sync(console)
    if action == "remove" and options["left"]:
        names = [*names, *(one.name for one in current().schedules.all() if one.left_code_at is not None)]
    elif not names:
        raise CommandError(f"Name the schedules to {action}; 'jobqueue schedules' lists them.", returncode=ERROR)
    try:
        found = [operation.find(name) for name in dict.fromkeys(names)]
        documents = [_ACTIONS[action](one, options, console) for one in found]
    except JobQueueError as error:
        raise failure(str(error)) from error
    if console.as_json:
        console.document({"action": action, "schedules": documents})
    return OK


def _list(console: Console) -> int:
    schedules, known = current().schedules.all(), summary.known_types()
    now, states = current().now(), [summary.state_of(one, known) for one in schedules]
    if console.as_json:
        listed = [_document(one, state) for one, state in zip(schedules, states, strict=True)]
        console.document({"now": plain(now), "schedules": listed})
    elif schedules:
        rows = [_cells(one, state, now) for one, state in zip(schedules, states, strict=True)]
        paints = {number: console.style.WARNING for number, state in enumerate(states) if state in _WORRYING}
        console.table(COLUMNS, rows, paints)
    for one, state in zip(schedules, states, strict=True):
        if state in _WORRYING:
            console.say(f"{one.name}: {_why(one, state)}", console.style.WARNING)
    return WARNING if any(state in _WORRYING for state in states) else OK


def _why(one: ScheduleRecord, state: ScheduleState) -> str:
    match state:
        case ScheduleState.TROUBLE:
            return one.trouble
        case ScheduleState.UNKNOWN_TYPE:
            return f"no live worker knows the job type {one.type!r}, so its slots wait."
        case _:
            return f"it left the code; 'jobqueue schedules remove {one.name}' deletes it."


def _cells(one: ScheduleRecord, state: ScheduleState, now: datetime) -> list[str]:
    following = "" if one.next_at is None or not one.is_live else _local(one.next_at, one)
    last = ago(one.last_slot_at, now) if one.runs else ""
    return [one.name, state.value, one.rule, one.zone, one.type, following, last, str(one.runs)]


def _local(moment: datetime, one: ScheduleRecord) -> str:
    try:
        zone = zone_of(one.zone)
    except JobQueueError:
        zone = ZoneInfo("UTC")
    return moment.astimezone(zone).isoformat(sep=" ", timespec="seconds")


def _document(one: ScheduleRecord, state: ScheduleState) -> dict[str, Any]:
    changed = {name: {"code": code, "now": now} for name, (code, now) in summary.changes_of(one).items()}
    words = {
        "payload": summary.payload_of(one),
        "state": state.value,
        "in_words": summary.in_words(one),
        "changed_by_operator": changed,
    }
    return {name: value for name, value in plain(one).items() if name != "declared"} | words


def _show(one: ScheduleRecord, options: dict[str, Any], console: Console) -> dict[str, Any]:
    state, runs = summary.state_of(one, summary.known_types()), summary.runs_of(one)
    document = _document(one, state)
    rate = summary.success_rate(runs)
    document["success_rate"] = rate
    document["next_slots"] = [plain(slot) for slot in summary.next_slots(one, options["count"])]
    document["last_runs"] = [_run_document(run) for run in runs]
    if not console.as_json:
        for name in ("name", "state", "in_words", "rule", "zone", "type", "payload", "options", "missed", "overlap"):
            console.line(f"{name.replace('_', ' ')}: {document[name]}")
        for name in ("pause_reason", "trouble"):
            if document[name]:
                console.line(f"{name.replace('_', ' ')}: {document[name]}")
        for name, (code, now) in summary.changes_of(one).items():
            console.line(f"an operator changed {name}: {now} (the code says {code})")
        console.line(f"success rate: {'-' if rate is None else f'{rate:.0%}'} of the last {len(runs)} runs")
        for run in runs[:10]:
            console.line(f"run {run.job.id}: {run.job.status.value}, slot {plain(run.slot_at) or '-'}")
        _next(one, options, console)
    return document


def _run_document(run: summary.Run) -> dict[str, Any]:
    return {
        "job": run.job.id,
        "slot_at": plain(run.slot_at),
        "status": run.job.status.value,
        "duration": plain(run.duration),
        "error": run.error,
    }


def _next(one: ScheduleRecord, options: dict[str, Any], console: Console) -> dict[str, Any]:
    slots = summary.next_slots(one, options["count"])
    if not console.as_json:
        for slot in slots:
            console.line(f"{one.name}\t{_local(slot, one)}")
    if not slots:
        console.say(f"The schedule {one.name} has no more slots.")
    return {"name": one.name, "slots": [plain(slot) for slot in slots]}


def _changed(
    change: Callable[[ScheduleRecord, dict[str, Any]], bool], done: str, not_done: str
) -> Callable[[ScheduleRecord, dict[str, Any], Console], dict[str, Any]]:
    """Return an action that makes a change and says whether it did."""

    def act(one: ScheduleRecord, options: dict[str, Any], console: Console) -> dict[str, Any]:
        changed = change(one, options)
        console.say(f"The schedule {one.name} {done if changed else not_done}.")
        return {"name": one.name, "changed": changed}

    return act


def _run_now(one: ScheduleRecord, _options: dict[str, Any], console: Console) -> dict[str, Any]:
    receipt = operation.run_now(one)
    if receipt.created:
        console.say(f"The schedule {one.name} runs now, as job {receipt.id}.")
    else:
        console.say(f"The schedule {one.name} already has a job that waits or runs: {receipt.id}.")
    return {"name": one.name, "job": receipt.id, "created": receipt.created}


def _remove(one: ScheduleRecord, _options: dict[str, Any]) -> bool:
    if one.origin is Origin.CODE and one.left_code_at is None:
        raise failure(
            f"The schedule {one.name} is in the code, which would make it again. Pause it, or remove it there."
        )
    return current().schedules.remove(one)


def _sync(console: Console) -> int:
    synced = sync(current())
    parts: Sequence[tuple[str, tuple[str, ...]]] = [
        ("made", synced.made),
        ("changed", synced.changed),
        ("left the code", synced.left),
        ("not taken from the code, because an operator's has the name", synced.taken),
    ]
    for words, names in parts:
        if names:
            console.say(f"{words}: {', '.join(names)}")
    if console.as_json:
        document = {"made": synced.made, "changed": synced.changed, "left": synced.left, "taken": synced.taken}
        console.document({name: list(names) for name, names in document.items()})
    return OK


_ACTIONS: dict[str, Callable[[ScheduleRecord, dict[str, Any], Console], dict[str, Any]]] = {
    "show": _show,
    "next": _next,
    "pause": _changed(lambda one, options: operation.pause(one, options["reason"]), "is paused", "was already paused"),
    "resume": _changed(lambda one, _: operation.resume(one), "is resumed", "was not paused"),
    "run-now": _run_now,
    "reset": _changed(lambda one, _: reset(current(), one), "is as the code says", "was as the code says already"),
    "remove": _changed(_remove, "is removed; its jobs stay", "was gone already"),
    "sync": lambda one, options, console: {},
}

SCHEDULES = Subcommand(
    "schedules",
    "list, show, pause, resume, run and remove schedules",
    """\
actions:
  list     all schedules, with what is wrong with them (the default)
  show     one schedule with its last runs and next slots
  next     the next slots, in the schedule's time zone
  pause    make no more jobs until the schedule is resumed
  resume   make jobs again
  run-now  make one job now, beside the slots
  reset    take the code's values for what an operator changed
  remove   delete schedules that operators made or that left the code; --left selects the latter
  sync     store the code's schedules, as each worker does when it starts

examples:
  manage.py jobqueue schedules
  manage.py jobqueue schedules pause nightly --reason "the provider is down"
  manage.py jobqueue schedules next nightly --count 3
  manage.py jobqueue schedules --json | jq '.schedules[] | select(.state == "trouble")'

exit codes:
  0  done, or nothing had to change
  1  the list has a schedule with trouble, of an unknown type, or that left the code
  2  invalid arguments
  3  nothing was changed: a name is unknown, or the change is refused
""",
    _add,
    _run,
)
