"""The function that declares a schedule in code."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from jobqueue.api.handler import Handler
from jobqueue.policy.retry import Seconds
from jobqueue.policy.schedules.rule import Rule
from jobqueue.schedules.declared import declare


def schedule(
    name: str,
    handler: Handler[..., Any, ...],
    rule: Rule,
    *,
    payload: object = None,
    start: datetime | None = None,
    end: datetime | None = None,
    max_runs: int | None = None,
    jitter: Seconds = 0,
    missed: Literal["skip", "once", "all"] = "once",
    missed_cap: int = 100,
    overlap: Literal["allow", "skip", "queue"] = "allow",
    while_paused: Literal["drop", "keep"] = "drop",
    **options: Any,
) -> None:
    """Declare a schedule of a handler's jobs. Call it in a module with jobs, where each process imports it.

    ``missed`` says what happens to slots that no worker fired in time, ``overlap`` what happens to a slot while an
    earlier job of the schedule waits or runs, and ``while_paused`` what happens to slots during a pause. ``jitter`` is
    the longest delay of the jobs; each schedule has a fixed delay up to it. The other options are queue, priority,
    max_retries, timeout, tenant, workspace, unique_key, and expires_after, which counts from the slot;
    ``handler.using(…)`` can set most of them too. Raises InvalidOption and InvalidHandler.
    """
    given = {
        "start": start,
        "end": end,
        "max_runs": max_runs,
        "jitter": jitter,
        "missed": missed,
        "missed_cap": missed_cap,
        "overlap": overlap,
        "while_paused": while_paused,
    }
    kind = handler.job_type
    of_using = {one: value for one, value in vars(handler.options).items() if value != getattr(kind.options, one)}
    declare(name, kind, rule, payload, given | of_using | options)
