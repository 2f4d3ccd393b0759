"""The child processes of a run. Each gets a line of JSON and answers line by line."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

#: Where this package is found, also by interpreters that have not installed it.
ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True, slots=True)
class Child:
    """A running process, its unbuffered input and output, and its exit status."""

    questions: IO[bytes]
    answers: IO[bytes]
    status: Callable[[], int]

    def ask(self, question: object) -> None:
        """Write a line of JSON to its standard input."""
        self.questions.write(json.dumps(question).encode() + b"\n")


@contextmanager
def running(command: Sequence[str], **options: Any) -> Iterator[Child]:
    """Run a command with an open input. It ends with its input, or at once on an error."""
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0, cwd=ROOT, **options
    ) as process:
        spoken = Child(cast(IO[bytes], process.stdin), cast(IO[bytes], process.stdout), process.wait)
        try:
            yield spoken
        except BaseException:
            process.terminate()
            raise
        finally:
            spoken.questions.close()


@contextmanager
def child(module: str, *arguments: str, asked: object) -> Iterator[Child]:
    """Run a module in a process of its own, and send it the request."""
    with running([sys.executable, "-m", module, *arguments]) as spoken:
        spoken.ask(asked)
        yield spoken
