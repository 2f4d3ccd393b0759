"""The ledger: what happened, told by those it happened to, outside the database and safely on the disk."""

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
    """What a line of the ledger tells of."""

    # by producers: TRYING comes before the job is enqueued, one of the others after it
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
    """One line. ``at`` is the system's monotonic clock, the same for all processes of a machine."""

    what: What
    at: float
    boot: str = ""
    job: str = ""
    fence: int = 0
    facts: dict[str, Any] = field(default_factory=dict)


class Ledger:
    """A file that many processes append to: a line that was noted is there whole, whatever becomes of its writer."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._read: list[Record] = []
        self._offset = 0

    @classmethod
    def of_this_process(cls) -> Ledger:
        """Find the ledger of the run that this process is part of."""
        return cls(Path(os.environ[PLACE]))

    def note(self, what: What, job: str = "", fence: int = 0, **facts: Any) -> None:
        """Append one line, and come back when the disk has it."""
        line = [what, SYSTEM.monotonic(), _own_boot(os.getpid()), job, fence, facts]
        file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(file, json.dumps(line, separators=(",", ":")).encode() + b"\n")
            os.fsync(file)
        finally:
            os.close(file)

    def records(self) -> list[Record]:
        """Read everything, in the order in which it was written."""
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
    """Name a process so that no later one with the same number is taken for it."""
    stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2]
    return f"{pid}:{stat.split()[19]}"


_own_boot = cache(boot)


@contextmanager
def recorded(ctx: JobContext) -> Iterator[Ledger]:
    """Note the start of a run and, if it comes to that, its end, or the error that broke it off."""
    ledger = Ledger.of_this_process()
    ledger.note(What.START, ctx.job_id, ctx.fence, attempt=ctx.attempt)
    try:
        yield ledger
    except BaseException as error:
        ledger.note(What.BROKEN, ctx.job_id, ctx.fence, error=type(error).__name__)
        raise
    ledger.note(What.END, ctx.job_id, ctx.fence)
