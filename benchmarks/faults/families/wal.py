"""SQLite's write-ahead log: obstacles to checkpoints, and interrupted checkpoints."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from benchmarks.faults.catalogue import SQLITE, fault
from benchmarks.faults.laboratory import Laboratory
from benchmarks.faults.needs import strace
from benchmarks.faults.soundness import look_for_damage
from benchmarks.faults.tracing import any_worker, end_worker_at
from benchmarks.workers import until

_PATIENCE = 60
_MB = 1_000_000


class Changes:
    """The file that has the changes which the database does not have yet."""

    def __init__(self, lab: Laboratory) -> None:
        self.path = Path(f"{lab.place.address}-wal")

    @property
    def size(self) -> int:
        """How large it is, in bytes."""
        return self.path.stat().st_size if self.path.exists() else 0

    @property
    def round(self) -> bytes:
        """What is another with each beginning of the file anew."""
        with self.path.open("rb") as file:
            return file.read(24)[16:]


def _copy_often(lab: Laboratory, pages: int) -> None:
    options = lab.place.database["OPTIONS"]
    options["init_command"] += f" PRAGMA wal_autocheckpoint={pages};"


@contextmanager
def _reading(lab: Laboratory) -> Iterator[None]:
    """Hold a snapshot of the database."""
    with closing(sqlite3.connect(lab.place.address, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM job_queue").fetchone()
        yield


@fault("T21a", "a reader that holds a snapshot", databases=SQLITE)
def long_reader(lab: Laboratory) -> None:
    """Hold a snapshot under load, and release it: the write-ahead log grows, and is reset within a minute."""
    if lab.quick:
        _copy_often(lab, 50)
    look_for_damage(lab)
    lab.crew.start(2, processes=1, concurrency=4, lease=lab.lease)
    lab.load.start(2, rate=40)
    changes, held, peaks = Changes(lab), 1.5 if lab.quick else 60.0, [0]
    while lab.goes_on():
        lab.pause(0.5)
        with _reading(lab):
            lab.pause(0.1)  # what was being begun anew is
            size, turn = changes.size, changes.round
            lab.pause(held)
            grown, is_same = changes.size - size, changes.round == turn
            peaks.append(changes.size)
        lab.expect(is_same, "a log that is read is not begun anew")
        if grown > 0:
            lab.injected(f"a snapshot; the log grew by {grown} bytes")
        lab.healed()
        until(lambda: changes.round != turn, "the log is begun anew", patience=_PATIENCE)  # noqa: B023
    lab.findings["largest log, MB"] = round(max(peaks) / _MB, 2)
    lab.findings["log after, MB"] = round(changes.size / _MB, 2)


@fault("T21b", "SIGKILL in the middle of a checkpoint", databases=SQLITE, needs=(strace,))
def die_in_a_checkpoint(lab: Laboratory) -> None:
    """Kill a supervisor at its n-th write into the database file: others recover it, and it is intact."""
    _copy_often(lab, 20)
    look_for_damage(lab)
    lab.crew.start(2, processes=1, concurrency=4, lease=lab.lease)
    lab.load.start(2, rate=20)
    file, tried = Path(lab.place.address).resolve(), 0
    while lab.goes_on():
        tried += 1
        if end_worker_at(lab, any_worker(lab), "pwrite64", 1 + tried % 12, path=file):
            lab.injected(note=False)
            with closing(sqlite3.connect(lab.place.address)) as own:
                found = own.execute("PRAGMA integrity_check").fetchone()[0]
            lab.expect(found == "ok", f"the file is whole after a kill, it says {found!r}")
    lab.findings["points"] = f"{lab.injections} of {tried}"
