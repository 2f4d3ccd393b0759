"""The files of an archive: their names, how they are written whole, and how they are read."""

from __future__ import annotations

import gzip
import json
import os
import re
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

#: Names such as ``completed-2026-01-16``.
_NAME = re.compile(r"(completed|failed|dead_letter)-\d{4}-\d\d-\d\d")
DAY_SUFFIX, PARTS_SUFFIX = ".jsonl.gz", ".parts"


def write(path: Path, lines: Iterable[bytes]) -> int:
    """Write a compressed file whole, and return how many lines it has. When this returns, the file is on the disk."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary, count = path.with_name(f".{path.name}.{os.getpid()}"), 0
    try:
        with temporary.open("wb") as raw:
            with gzip.GzipFile("", "wb", fileobj=raw, mtime=0) as packed:
                for line in lines:
                    packed.write(line)
                    count += 1
            raw.flush()
            os.fsync(raw.fileno())
        if sum(1 for _ in read(temporary)) != count:  # reading also compares the checksum
            raise OSError(f"{temporary} does not have the {count} lines that were written to it")
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    _sync(path.parent)
    _sync(path.parent.parent)
    return count


def _sync(folder: Path) -> None:
    """Have the disk remember the names in a folder."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def line_of(row: dict[str, Any]) -> bytes:
    """Return the line of a job."""
    return json.dumps(row, separators=(",", ":"), default=str).encode() + b"\n"


def read(path: Path) -> Iterator[bytes]:
    """Read the lines of a file. Raise OSError if it is damaged."""
    try:
        with gzip.open(path, "rb") as packed:
            yield from packed
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise OSError(f"{path} is damaged: {error}") from error


def names(folder: Path) -> list[str]:
    """List the days and statuses of an archive, the newest day first."""
    stems = {path.name.removesuffix(DAY_SUFFIX).removesuffix(PARTS_SUFFIX) for path in folder.glob("*-*-*-*")}
    return sorted(filter(_NAME.fullmatch, stems), key=lambda name: name.partition("-")[2], reverse=True)


def parts(folder: Path, name: str) -> list[Path]:
    """List the parts of a day and status, the oldest first."""
    return sorted((folder / f"{name}{PARTS_SUFFIX}").glob(f"*{DAY_SUFFIX}"))


def day_file(folder: Path, name: str) -> Path:
    """Return the file of a day and status, which may not be there yet."""
    return folder / f"{name}{DAY_SUFFIX}"


def lines(folder: Path, name: str) -> Iterator[bytes]:
    """Read the jobs of a day and status, the last archived first, each once.

    A job is in two files if the process that archived it died before the job was deleted.
    """
    seen, whole = set[str](), day_file(folder, name)
    for path in [*reversed(parts(folder, name)), *([whole] if whole.exists() else [])]:
        for line in read(path):
            job_id = json.loads(line)["id"]
            if job_id not in seen:
                seen.add(job_id)
                yield line
