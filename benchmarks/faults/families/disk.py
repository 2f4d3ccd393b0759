"""Disks that are temporarily full or failing."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.faults.catalogue import SQLITE, fault
from benchmarks.faults.checker import Account
from benchmarks.faults.crew import Worker
from benchmarks.faults.families.commit_points import sync_each_commit
from benchmarks.faults.laboratory import Laboratory
from benchmarks.faults.ledger import What
from benchmarks.faults.needs import strace
from benchmarks.faults.soundness import look_for_damage
from benchmarks.faults.tracing import tampered
from benchmarks.workers import until

_PATIENCE = 60


@fault("T24a", "writes that fail: no space left, or an error of the disk", databases=SQLITE, needs=(strace,))
def writes_fail(lab: Laboratory) -> None:
    """Let all writes or syncs of workers and producers fail for a while: callers get errors, and all recovers."""
    sync_each_commit(lab)
    look_for_damage(lab)
    workers = lab.crew.start(2, processes=1, concurrency=4, lease=lab.lease)
    lab.load.start(2, rate=20)
    failing = [("pwrite64", "ENOSPC"), ("pwrite64", "EIO"), ("fdatasync", "EIO")]
    while lab.goes_on():
        call, error = failing[lab.injections % len(failing)]
        lab.pause(0.3)
        with tampered(lab, [*(one.pid for one in workers), *lab.load.pids], call, f"error={error}") as tampering:
            until(lambda: tampering.times >= 4, "something was written", patience=_PATIENCE)
            lab.pause(0.1, 0.5 if lab.quick else 3 * lab.lease)
        lab.injected(f"{error} at {tampering.times} calls of {call}")
        _goes_on_unaided(lab, workers)
    told = [one.facts["error"] for one in lab.told(What.REFUSED, What.UNKNOWN)]
    lab.findings["callers told"] = len(told)


@fault("T24b", "a file that cannot grow", databases=SQLITE)
def file_cannot_grow(lab: Laboratory) -> None:
    """Keep workers from enlarging any file, as on a full disk, for a while: all recovers by itself."""
    look_for_damage(lab)
    workers = lab.crew.start(2, processes=1, concurrency=4, lease=lab.lease)
    lab.load.start(2, rate=20)
    while lab.goes_on():
        before = [len(one.output) for one in workers]
        with _no_growth(lab, workers):
            if lab.quick:
                until(lambda: _is_out(workers, before), "a worker misses its database", patience=_PATIENCE)  # noqa: B023
            lab.pause(0.1, 0.5 if lab.quick else 3 * lab.lease)
        if _is_out(workers, before):
            lab.injected("RLIMIT_FSIZE")
        _goes_on_unaided(lab, workers)


def _is_out(workers: list[Worker], before: list[int]) -> bool:
    """Return whether a worker has logged meanwhile that the database is out of reach."""
    return any("out of reach" in one.output[at:] for one, at in zip(workers, before, strict=True))


@contextmanager
def _no_growth(lab: Laboratory, workers: list[Worker]) -> Iterator[None]:
    """Limit the supervisors' files to the current size of the write-ahead log."""
    size = Path(f"{lab.place.address}-wal").stat().st_size
    former = {one.pid: resource.prlimit(one.pid, resource.RLIMIT_FSIZE) for one in workers}
    for pid, (_, hard) in former.items():
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (max(8192, size // 2), hard))
    try:
        yield
    finally:
        for pid, limits in former.items():
            resource.prlimit(pid, resource.RLIMIT_FSIZE, limits)


def _goes_on_unaided(lab: Laboratory, workers: list[Worker]) -> None:
    """Expect that the same workers work again, and that a new job is accepted and run."""
    lab.healed()
    jobs = lab.enqueue("short")
    lab.expect(jobs, "a job is accepted once there is space again")
    until(lambda: lab.started(*jobs), "work goes on once there is space again", patience=_PATIENCE)
    lab.expect(all(one.process.poll() is None for one in workers), "no worker has ended")


@fault("T24c", "a log on a full disk, from the start")
def log_is_full(lab: Laboratory) -> None:
    """Start workers with a log on a device that is always full: they run all jobs without a log."""
    full = ("sh", "-c", 'exec "$@" >/dev/full 2>&1', "sh")
    workers = lab.crew.start(2, prefix=full, processes=1, concurrency=4, lease=lab.lease)
    lab.load.start(2, rate=20)
    while lab.goes_on():
        lab.pause(0.5)
        lab.injections = len(workers)
    lab.expect(not any(one.output for one in workers), "the logs are empty")
    _expect_no_run_cut_short(lab)


@fault("T24d", "a log whose disk is full for a while", needs=(strace,))
def log_fills_up(lab: Laboratory) -> None:
    """Let all writes to the workers' logs fail for a while: no job suffers, and logging resumes."""
    workers = lab.crew.start(2, processes=1, concurrency=4, lease=lab.lease)
    lab.load.start(2, rate=20)
    while lab.goes_on():
        worker = lab.rng.choice(workers)
        with tampered(lab, worker.family(), "write", "error=ENOSPC", path=worker.log.resolve()) as tampering:
            until(lambda: tampering.times > 0, "a line is lost", patience=_PATIENCE)
            lab.pause(0.2, 0.5 if lab.quick else 3 * lab.lease)
        lab.injected(f"ENOSPC at {tampering.times} writes to a log")
        length = len(worker.output)
        until(lambda: len(worker.output) > length, "a worker speaks again", patience=_PATIENCE)  # noqa: B023
    _expect_no_run_cut_short(lab)


def _expect_no_run_cut_short(lab: Laboratory) -> None:
    def look(account: Account) -> None:
        lab.expect(not account.recoveries, f"no run is cut short, {len(account.recoveries)} were")

    lab.afterwards(look)
