"""The ledger, in which processes record what happened to them, on disk and outside the database."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any

from jobqueue import JobContext
from jobqueue.clock import SYSTEM

#: The environment variable that tells the processes of a run where the ledger is.
PLACE = "JOBQUEUE_FAULTS_LEDGER"


class What(StrEnum):
    """The subject of a line in the ledger."""

    # by producers: TRYING before the job is enqueued, one of the others afterwards
    TRYING = "trying"
    ACCEPTED = "accepted"
    REFUSED = "refused"
    UNKNOWN = "unknown"
    # by handlers: END is the effect of the run
    START = "start"
    SEEN = "seen"
    END = "end"
    BROKEN = "broken"
    # by the laboratory
    INJECTED = "injected"
    FROZEN = "frozen"
    THAWED = "thawed"
    HEALED = "healed"


@dataclass(frozen=True, slots=True)
class Record:
    """A line. ``at`` is the system's monotonic clock, which all processes of a machine share."""

    what: What
    at: float
    boot: str = ""
    job: str = ""
    fence: int = 0
    facts: dict[str, Any] = field(default_factory=dict)


class Ledger:
    """A file that many processes append to. A written line is complete, even if its writer dies."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._read: list[Record] = []
        self._offset = 0

    @classmethod
    def of_this_process(cls) -> Ledger:
        """Return the ledger of the run that this process belongs to."""
        return cls(Path(os.environ[PLACE]))

    def note(self, what: What, job: str = "", fence: int = 0, **facts: Any) -> None:
        """Append a line, and return when it is on disk."""
        line = [what, SYSTEM.monotonic(), _own_boot(os.getpid()), job, fence, facts]
        file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(file, json.dumps(line, separators=(",", ":")).encode() + b"\n")
            os.fsync(file)
        finally:
            os.close(file)

    def records(self) -> list[Record]:
        """Return all records in the order of writing."""
        if self.path.exists():
            with self.path.open("rb") as file:
                file.seek(self._offset)
                for line in file:
                    if not line.endswith(b"\n"):
                        break  # it is being written
                    self._read.append(_record(*json.loads(line)))
                    self._offset += len(line)
        return list(self._read)


def _record(what: str, at: float, boot: str, job: str, fence: int, facts: dict[str, Any]) -> Record:
    return Record(What(what), at, boot, job, fence, facts)


def boot(pid: int) -> str:
    """Return a unique name for a process, even if its number is used again."""
    stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2]
    return f"{pid}:{stat.split()[19]}"


_own_boot = cache(boot)


@contextmanager
def recorded(ctx: JobContext) -> Iterator[Ledger]:
    """Record the start of a run, and its end or the error that ended it."""
    ledger = Ledger.of_this_process()
    ledger.note(What.START, ctx.job_id, ctx.fence, attempt=ctx.attempt)
    try:
        yield ledger
    except BaseException as error:
        ledger.note(What.BROKEN, ctx.job_id, ctx.fence, error=type(error).__name__)
        raise
    ledger.note(What.END, ctx.job_id, ctx.fence)
