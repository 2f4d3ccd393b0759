"""The growth of a worker: its resident memory over half a million jobs, enqueued in batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import linear_regression, stdev

from benchmarks.jobs import Resize, resize_image
from benchmarks.report import Figure, Value
from benchmarks.site import Site
from benchmarks.workers import Worker, rows, until, worker

SLOTS = 50
BATCH = 5_000
#: A worker that has not met every path yet still grows; what it does afterwards is judged.
SETTLED = 0.2
#: What an allocator keeps or gives back at its own discretion: Python's takes memory by the megabyte. One object lost
#: with each of 400,000 jobs would come to 6 MB at the least.
DISCRETION = 2 * 2**20


def soak(site: Site) -> Iterator[Figure]:
    """Measure the memory of supervisor and executor over 500,000 jobs: its slope after the warm-up."""
    jobs = site.size(500_000, 20_000)
    batch = min(BATCH, jobs // 20)
    samples: dict[str, list[int]] = {"supervisor": [], "executor": []}
    site.fresh()
    with worker(site, concurrency=SLOTS) as running:
        for start in range(0, jobs, batch):
            _feed(start, batch)
            for role, size in _resident(running).items():
                samples[role].append(size)
    yield from (_grown(site, role, sizes, batch) for role, sizes in samples.items())


def _feed(start: int, batch: int) -> None:
    """Enqueue a batch, and wait until the worker has taken it."""
    resize_image.enqueue_many(Resize(image_id=number) for number in range(start, start + batch))
    # With `priority > 0` the index serves: without, each look would read all that was ever done.
    until(lambda: not rows("Job").filter(status="queued", priority__gt=0).exists(), "the batch is taken")


def _resident(running: Worker) -> dict[str, int]:
    """Return the resident bytes of the supervisor and of the executor."""
    supervisor, executor = running.family()[0], running.executors()[0]
    return {"supervisor": _bytes(supervisor), "executor": _bytes(executor)}


def _bytes(pid: int) -> int:
    rollup = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii")
    return next(1024 * int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Rss:"))


def _grown(site: Site, role: str, sizes: Sequence[int], batch: int) -> Figure:
    """Fit a line through the samples. Its rise is judged against their deviation."""
    settled = sizes[int(SETTLED * len(sizes)) :]
    done = [float(batch * turn) for turn in range(len(settled))]
    slope, start = linear_regression(done, settled)
    growth = slope * done[-1]
    noise = stdev(size - start - slope * jobs for size, jobs in zip(settled, done, strict=True))
    allowed = max(DISCRETION, 3 * noise)
    numbers = {"slope": slope, "growth": growth, "noise": noise, "first": sizes[0], "last": sizes[-1]}
    return Figure(
        database=site.place.vendor,
        measure=f"resident memory of the {role}, {batch * len(sizes):,} jobs",
        ours=Value(f"{slope:+.2f} B/job, {_mb(growth)} to {sizes[-1] / 2**20:.1f} MB", numbers),
        goal=f"≤ {_mb(allowed)} over {done[-1]:,.0f} jobs",
        reached=growth <= allowed,
    )


def _mb(size: float) -> str:
    return f"{size / 2**20:+.1f} MB"
