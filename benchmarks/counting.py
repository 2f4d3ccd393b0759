"""The numbers of instructions for an enqueue and a worker's turn, which don't depend on the machine's load."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict

from benchmarks.cycling import OWNER, REQUEST, SLOTS
from benchmarks.jobs import Resize, resize_image
from benchmarks.raw import RESULT, Crowd
from benchmarks.report import Figure, Value
from benchmarks.site import Site
from jobqueue import backends
from jobqueue.ids import new_id
from jobqueue.policy.settling import completed
from jobqueue.records import Settlement

#: It counts nothing until the process asks for it, so that what is loaded before costs seconds, not minutes.
_VALGRIND = ("valgrind", "--tool=callgrind", "--instr-atstart=no", "--callgrind-out-file=/dev/null")
#: The same for every count, and more than any cycle takes.
_BACKLOG = 10_000
_COLLECTED = re.compile(r"Collected : (\d+)")


def enqueue(times: int) -> None:
    """Enqueue with the public API, like the measurement of enqueueing."""
    for number in range(times):
        resize_image.using(idempotency_key=new_id()).enqueue(Resize(image_id=number))


def cycle(times: int) -> None:
    """Settle fifty and claim the next fifty."""
    settlements: Sequence[Settlement] = ()
    for _ in range(times):
        turn = backends.current().cycle(OWNER, settlements, REQUEST)
        settlements = [completed(claim, RESULT) for claim in turn.claims]


ACTS: dict[str, Callable[[int], None]] = {"enqueue": enqueue, "cycle": cycle}


def instructions(site: Site) -> Iterator[Figure]:
    """Count the instructions of one enqueue and of one cycle of 50, by callgrind; on Postgres the client's."""
    for name, times, measure in (
        ("enqueue", site.size(200, 50), "instructions of one enqueue"),
        ("cycle", site.size(40, 10), f"instructions of one cycle of {SLOTS}"),
    ):
        yield Figure(database=site.place.vendor, measure=measure, ours=_counted(site, name, times))


def _counted(site: Site, act: str, times: int) -> Value:
    """Count once and twice the repetitions: their difference excludes constant costs such as the start."""
    if not shutil.which(_VALGRIND[0]):
        return Value("not run: valgrind is not installed")
    once, twice = (_collected(site, act, count) for count in (times, 2 * times))
    each = (twice - once) / times
    return Value(f"{each:,.0f}", {"instructions": each})


def _collected(site: Site, act: str, times: int) -> int:
    site.fresh()
    site.raw.fill(Crowd(count=_BACKLOG))
    asked = json.dumps({"place": asdict(site.place), "act": act, "times": times})
    process = subprocess.run(
        [*_VALGRIND, sys.executable, "-m", "benchmarks.counted", asked],
        env={**os.environ, "PYTHONHASHSEED": "0"},
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    found = _COLLECTED.search(process.stderr)
    if process.returncode or not found:
        raise RuntimeError(f"nothing was counted: {process.stderr.strip()}")
    return int(found.group(1))
