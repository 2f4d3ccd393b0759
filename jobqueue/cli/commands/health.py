"""``health``: whether the queue is healthy, in one word for a monitor, with the checks that say so."""

from __future__ import annotations

from typing import Any

from jobqueue.backends import current
from jobqueue.cli.arguments import Subcommand
from jobqueue.cli.console import Console
from jobqueue.cli.exits import ERROR, OK, WARNING
from jobqueue.observe.health import Check, State, report
from jobqueue.relay.outbox import waiting_in

EXIT_CODES = {State.HEALTHY: OK, State.DEGRADED: WARNING, State.UNHEALTHY: ERROR}


def _run(_options: dict[str, Any], console: Console) -> int:
    found = report(current(), waiting_in)
    if console.as_json:
        console.document(found.document())
    else:
        paints = {
            State.HEALTHY: console.style.SUCCESS,
            State.DEGRADED: console.style.WARNING,
            State.UNHEALTHY: console.style.ERROR,
        }
        console.line(found.state.value, paints[found.state])
        for one in found.checks:
            console.line(f"{one.name}: {one.state.value}; {_values(one)}", paints[one.state])
    return EXIT_CODES[found.state]


def _values(check: Check) -> str:
    return ", ".join(f"{name.replace('_', ' ')} {_value(value)}" for name, value in check.values.items())


def _value(value: object) -> str:
    if value in (None, []):
        return "-"
    if isinstance(value, float):
        return f"{value:,.1f}"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


HEALTH = Subcommand(
    "health",
    "show whether the queue is healthy, degraded or unhealthy",
    """\
The queue is unhealthy if the database doesn't answer, if no worker is alive, or if there are as many dead letters as
JOBQUEUE["MAX_DEAD_LETTERS"]. It is degraded if it has fewer workers than JOBQUEUE["MIN_WORKERS"], a dead letter, or
another problem that "jobqueue status" describes.

exit codes:
  0  healthy
  1  degraded
  2  unhealthy
""",
    lambda _parser: None,
    _run,
)
