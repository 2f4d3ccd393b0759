"""The files of an archive: their names, their lines, and how they are written and read."""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Iterable, Iterator
from typing import IO, Any

SUFFIX, PARTS_SUFFIX = ".jsonl.gz", ".parts"
#: The day and status, such as ``completed-2026-01-16``, with which the name of each file and folder begins.
_NAME = re.compile(r"((?:completed|failed|dead_letter)-\d{4}-\d\d-\d\d)\.[\w.]+")


def line_of(row: dict[str, Any]) -> bytes:
    """Return the line of a job."""
    return json.dumps(row, separators=(",", ":"), default=str).encode() + b"\n"


def write(file: IO[bytes], lines: Iterable[bytes]) -> int:
    """Write compressed lines, and return how many there are."""
    count = 0
    with gzip.GzipFile("", "wb", fileobj=file, mtime=0) as packed:
        for line in lines:
            packed.write(line)
            count += 1
    return count


def read(file: IO[bytes], name: object) -> Iterator[bytes]:
    """Read the lines of a file, which has a name for errors. Raise OSError if it is damaged."""
    try:
        with gzip.GzipFile(fileobj=file, mode="rb") as packed:
            yield from packed
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise OSError(f"{name} is damaged: {error}") from error


def check(lines: Iterable[bytes], count: int, name: object) -> None:
    """Raise OSError unless a file has as many lines as were written. Reading also compares the checksum."""
    if sum(1 for _ in lines) != count:
        raise OSError(f"{name} does not have the {count} lines that were written to it")


def days(names: Iterable[str]) -> list[str]:
    """Return the days and statuses of files and folders, the newest day first. Other names are ignored."""
    found = {match[1] for match in map(_NAME.fullmatch, names) if match}
    return sorted(found, key=lambda name: name.partition("-")[2], reverse=True)
