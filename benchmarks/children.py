"""Processes of a run: each is asked by one line of JSON and answers line by line."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, cast


@dataclass(frozen=True, slots=True)
class Child:
    """A running process: its answers, unbuffered, and how it ended."""

    answers: IO[bytes]
    status: Callable[[], int]


@contextmanager
def child(module: str, *arguments: str, asked: object) -> Iterator[Child]:
    """Run a module in a process of its own. It ends with its input, at the latest, and on an error at once."""
    command = [sys.executable, "-m", module, *arguments]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as process:
        question = cast(IO[bytes], process.stdin)
        try:
            question.write(json.dumps(asked).encode() + b"\n")
            yield Child(cast(IO[bytes], process.stdout), process.wait)
        except BaseException:
            process.terminate()
            raise
        finally:
            question.close()
