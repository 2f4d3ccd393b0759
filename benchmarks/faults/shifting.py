"""Wrong wall clocks that can be changed while processes run, by a small preloaded library."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

_SOURCE = Path(__file__).with_name("clock.c")
_WIDTH = 8


def library(folder: Path) -> Path:
    """Compile the library that shifts clocks."""
    made = folder / "clock.so"
    if not made.exists():
        compiler = shutil.which("gcc") or shutil.which("cc") or "cc"
        subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", str(made), str(_SOURCE), "-ldl"], check=True)
    return made


class WrongClock:
    """A clock that is off by a number of seconds."""

    def __init__(self, folder: Path, name: str) -> None:
        self._file = folder / f"clock-{name}"
        self._library = library(folder)
        self.set(0)

    @property
    def prefix(self) -> tuple[str, ...]:
        """Return the command prefix of a process that uses this clock, with its children."""
        return ("env", f"LD_PRELOAD={self._library}", f"JOBQUEUE_FAULTS_CLOCK={self._file}")

    def set(self, seconds: int) -> None:
        """Set the number of seconds that it is ahead."""
        with self._file.open("r+b" if self._file.exists() else "wb") as file:
            file.write(seconds.to_bytes(_WIDTH, sys.byteorder, signed=True))
        self.seconds = seconds

    def shows(self) -> float:
        """Return the time in a process that uses it."""
        asked = [*self.prefix, "date", "+%s.%N"]
        return float(subprocess.run(asked, check=True, capture_output=True, text=True).stdout)
