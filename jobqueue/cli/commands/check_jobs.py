"""``check-jobs``: the stored jobs and schedules that no code here can run, for CI and deploys."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from shlex import quote
from typing import Any

from jobqueue.backends import current
from jobqueue.cli.arguments import Subcommand
from jobqueue.cli.console import Console
from jobqueue.cli.exits import OK, WARNING
from jobqueue.cli.values import counted, plain
from jobqueue.handlers.registry import registry
from jobqueue.observe.questions.unrunnable import Inspection, Mistake, Unrunnable, inspect
from jobqueue.policy.nearest import did_you_mean
from jobqueue.records import Filter
from jobqueue.states import JobStatus

_OF_SCHEDULES = (
    Mistake.SCHEDULE_OF_UNKNOWN_TYPE,
    Mistake.SCHEDULE_VERSION_FROM_FUTURE,
    Mistake.SCHEDULE_PAYLOAD_INVALID,
)
_WORDS = {
    Mistake.UNKNOWN_TYPE: "no handler has this name",
    Mistake.SCHEDULE_OF_UNKNOWN_TYPE: "no handler has this name",
}
_ADVICE = {
    Mistake.UNKNOWN_TYPE: (
        "Deploy the code that has the handler, give the renamed one @job(aliases=[{name!r}]), or end these jobs with "
        "manage.py jobqueue cancel --type {quoted}."
    ),
    Mistake.VERSION_FROM_FUTURE: (
        "Deploy a release with this payload version. Until then, workers of this one leave these jobs alone."
    ),
    Mistake.PAYLOAD_INVALID: (
        "Give @job an upgrader, or make the changed fields optional (docs/how-to/payloads.md). Workers would make "
        "these jobs dead letters."
    ),
    Mistake.SCHEDULE_OF_UNKNOWN_TYPE: (
        "Deploy the code that has the handler, or delete them with manage.py jobqueue schedules remove."
    ),
    Mistake.SCHEDULE_VERSION_FROM_FUTURE: "Deploy a release with this payload version.",
    Mistake.SCHEDULE_PAYLOAD_INVALID: "Change the payload of the schedule, or give @job an upgrader.",
}


def _add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--all", action="store_true", help="Look at all queued jobs, instead of the first of each queue and type."
    )


def _run(options: dict[str, Any], console: Console) -> int:
    backend = current()
    progress: Callable[[int], None] = _no_progress
    if options["all"] and console.err.isatty():
        total = backend.jobs.count(Filter(statuses=frozenset({JobStatus.QUEUED})))
        progress = partial(_progress, console, total)
    seen = inspect(backend, everything=options["all"], progress=progress)
    if console.as_json:
        console.document(
            {
                "jobs": seen.jobs,
                "schedules": seen.schedules,
                "is_part": seen.is_part,
                "found": [plain(one) | {"advice": _advice(one)} for one in seen.found],
            }
        )
    else:
        _show(seen, console)
    return WARNING if seen.found else OK


def _no_progress(_done: int) -> None:
    """Show nothing."""


def _progress(console: Console, total: int, done: int) -> None:
    console.progress(done, max(total, done))


def _show(seen: Inspection, console: Console) -> None:
    more = "+" if seen.is_part else ""
    for one in seen.found:
        what = "schedule" if one.mistake in _OF_SCHEDULES else "job"
        number = f"{one.count:,}{more} {what}{'' if one.count == 1 and not more else 's'}"
        console.line(f"{one.mistake.value}: {number} of type {one.type}: {_why(one)}", console.style.WARNING)
        console.line(f"  {', '.join(one.examples)}{', …' if one.count > len(one.examples) else ''}")
        console.line(f"  {_advice(one)}")
    rest = "; there are more, which --all looks at" if seen.is_part else ""
    jobs, schedules = counted(seen.jobs), counted(seen.schedules, "schedule")
    outcome = "Some can't be run." if seen.found else "This code can run all of them."
    console.say(f"{jobs} and {schedules} looked at{rest}. {outcome}")


def _why(one: Unrunnable) -> str:
    return one.why or _WORDS.get(one.mistake, "-")


def _advice(one: Unrunnable) -> str:
    advice = _ADVICE[one.mistake].format(name=one.type, quoted=quote(one.type))
    is_unknown = one.mistake in (Mistake.UNKNOWN_TYPE, Mistake.SCHEDULE_OF_UNKNOWN_TYPE)
    return f"{did_you_mean(one.type, registry.names, '')} {advice}".strip() if is_unknown else advice


CHECK_JOBS = Subcommand(
    "check-jobs",
    "find stored jobs and schedules that this code can't run",
    """\
Run it with the new code before a deploy, against the database in use. It reads the schedules, the running jobs, and the
first 100 jobs of each queue and type, about 20,000 in all. It finds jobs and schedules whose type has no handler here,
whose payload a newer release wrote, or whose payload no longer validates. Nothing is changed. Jobs are read in pages,
each in a transaction of its own, so --all holds no snapshot.

examples:
  manage.py jobqueue check-jobs
  manage.py jobqueue check-jobs --all --json | jq '.found[] | {mistake, type, count}'

exit codes:
  0  this code can run what was looked at
  1  it can't run some jobs or schedules
  3  the jobs can't be read
""",
    _add,
    _run,
)
