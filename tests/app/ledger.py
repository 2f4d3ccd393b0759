"""The ledger of handlers: lines that are on disk before a handler goes on, so that they survive its process."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from jobqueue import JobContext
from jobqueue.clock import SYSTEM

PLACE = "JOBQUEUE_TEST_LEDGER"


def note(what: str, ctx: JobContext | None = None, **facts: Any) -> None:
    """Append one line. Its moment is the system's monotonic clock, the same for all processes."""
    if ctx is not None:
        facts = {"job": ctx.job_id, "fence": ctx.fence, "attempt": ctx.attempt, **facts}
    line = json.dumps({"what": what, "pid": os.getpid(), "at": SYSTEM.monotonic(), **facts}, default=str)
    file = os.open(_folder() / "ledger", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(file, line.encode() + b"\n")
        os.fsync(file)
    finally:
        os.close(file)


@contextmanager
def recorded(ctx: JobContext) -> Iterator[None]:
    """Note the start of a run and, if it comes to that, its end, or the error that broke it off."""
    note("start", ctx)
    try:
        yield
    except BaseException as error:
        note("broken", ctx, error=type(error).__name__)
        raise
    note("end", ctx)


def is_open(gate: str) -> bool:
    """Whether the test has opened a gate."""
    return (_folder() / f"{gate}.gate").exists()


def wait_at(gate: str, longest: float = 60.0) -> None:
    """Wait until the test opens a gate; an interruption hits within milliseconds."""
    end = SYSTEM.monotonic() + longest
    while not is_open(gate) and SYSTEM.monotonic() < end:
        time.sleep(0.005)


def _folder() -> Path:
    return Path(os.environ[PLACE])


@dataclass(frozen=True)
class Run:
    """One run of a job, as its handler told of it; ``ended`` is the moment of its proper end."""

    job: str
    fence: int
    attempt: int
    pid: int
    started: float
    seen: float
    ended: float | None
    broken: str | None


class Ledger:
    """The test's end: reads what handlers noted, and opens gates for them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def open_gate(self, gate: str) -> None:
        """Let those pass who wait at a gate."""
        (self.folder / f"{gate}.gate").touch()

    def entries(self, what: str | None = None, job: str | None = None) -> list[dict[str, Any]]:
        """Read what was noted, oldest first."""
        try:
            text = (self.folder / "ledger").read_text(encoding="utf-8")
        except FileNotFoundError:
            return []
        whole, _, _being_written = text.rpartition("\n")
        everything = [json.loads(line) for line in whole.splitlines()]
        return [one for one in everything if what in (None, one["what"]) and job in (None, one.get("job"))]

    def runs(self, job: str | None = None) -> list[Run]:
        """Read the runs of one job, or of all, in the order of their starts."""
        return [self._run(start) for start in self.entries("start", job)]

    def _run(self, start: dict[str, Any]) -> Run:
        mine = [one for one in self.entries(job=start["job"]) if one["fence"] == start["fence"]]
        ended = next((one["at"] for one in mine if one["what"] == "end"), None)
        broken = next((one["error"] for one in mine if one["what"] == "broken"), None)
        claim = (start["job"], start["fence"], start["attempt"])
        return Run(*claim, start["pid"], start["at"], max(one["at"] for one in mine), ended, broken)

    def started(self, *jobs: str) -> bool:
        """Whether each of these jobs has begun to run."""
        return set(jobs) <= {one["job"] for one in self.entries("start")}

    def overlaps(self) -> list[tuple[Run, Run]]:
        """List the runs of one job that were seen alive after the next one had begun."""
        by_job: dict[str, list[Run]] = {}
        for run in self.runs():
            by_job.setdefault(run.job, []).append(run)
        pairs = [pair for several in by_job.values() for pair in pairwise(several)]
        return [(one, other) for one, other in pairs if one.seen > other.started]
