"""Tests of a real worker's memory, and of its return to the system."""

from __future__ import annotations

import ctypes
from pathlib import Path

import pytest

from jobqueue.models import Job
from jobqueue.worker import memory
from jobqueue.worker.supervisor.duties import upkeep
from tests.app.worker_jobs import note_run
from tests.conftest import ON_SQLITE
from tests.worker.harness import until

needs_glibc = pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="only glibc gives memory back")


def own_kilobytes(pid):
    """What a process shares with no other."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("Private_"))


@needs_glibc
@ON_SQLITE
def test_a_worker_that_was_busy_gives_memory_back(queue, alias, start_worker):
    note_run.enqueue_many([{"number": number} for number in range(4 * upkeep.BUSY)])
    worker = start_worker()
    sizes = []

    def is_idle():
        sizes.append(own_kilobytes(worker.pid))
        return not Job.objects.using(alias).filter(status__in=["queued", "in_progress"]).exists()

    until(is_idle)
    most = max(sizes)
    until(lambda: own_kilobytes(worker.pid) < most - 1_000, what=lambda: f"{own_kilobytes(worker.pid)} of {most} kB")


@needs_glibc
def test_what_is_free_in_the_midst_of_the_heap_is_given_back():
    libc = ctypes.CDLL(None)
    libc.malloc.restype, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
    blocks = [libc.malloc(100_000) for _ in range(400)]
    for block in blocks:
        ctypes.memset(block, 1, 100_000)
    for block in blocks[:-1]:  # the last one is above them
        libc.free(block)
    before = memory.resident("self")
    memory.give_back()
    assert memory.resident("self") < before - 30
    libc.free(blocks[-1])
