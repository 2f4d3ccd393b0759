"""Stopwatches, and the statistics of many runs: median, spread, and share of the bare SQL."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median

from benchmarks.report import Figure, Goal, Value
from jobqueue.clock import SYSTEM


def seconds(work: Callable[[], object]) -> float:
    """Return how long a function takes."""
    start = SYSTEM.monotonic()
    work()
    return SYSTEM.monotonic() - start


def interleaved(
    repetitions: int, ours: Callable[[], float], raw: Callable[[], float] | None
) -> tuple[list[float], list[float]]:
    """Measure in turns, so that a slow spell of the machine affects both."""
    mine: list[float] = []
    bare: list[float] = []
    for _ in range(repetitions):
        mine.append(ours())
        if raw is not None:
            bare.append(raw())
    return mine, bare


def percentile(values: Sequence[float], percent: float) -> float:
    """Return the value that ``percent`` of all values don't exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]


def rate(values: Sequence[float]) -> Value:
    """Return a value for jobs per second."""
    low, middle, high = min(values), median(values), max(values)
    return Value(f"{middle:,.0f}/s ({low:,.0f}-{high:,.0f})", {"median": middle, "low": low, "high": high})


def milliseconds(values: Sequence[float]) -> Value:
    """Return a value for durations in seconds."""
    low, middle, high = (1000 * value for value in (min(values), median(values), max(values)))
    return Value(f"{middle:.3f} ms ({low:.3f}-{high:.3f})", {"median": middle, "low": low, "high": high})


def tail(values: Sequence[float]) -> Value:
    """Return a value for the median and the tail of many durations in seconds."""
    p50, p95, p99 = (1000 * percentile(values, percent) for percent in (50, 95, 99))
    text = f"p50 {p50:.2f}, p95 {p95:.2f}, p99 {p99:.2f} ms"
    return Value(text, {"p50": p50, "p95": p95, "p99": p99, "max": 1000 * max(values)})


def compared_rates(
    database: str, measure: str, ours: Sequence[float], raw: Sequence[float], goal: Goal | None = None
) -> Figure:
    """Return a figure of jobs per second, ours and the bare SQL's."""
    result, ratio = rate(ours), share(ours, raw)
    return Figure(
        database=database,
        measure=measure,
        ours=result,
        raw=rate(raw),
        share=ratio,
        goal=str(goal) if goal else "",
        reached=goal.is_reached(result.numbers["median"], ratio) if goal else None,
    )


def share(ours: Sequence[float], raw: Sequence[float]) -> float | None:
    """Return the median of the ratios of each run to the one beside it."""
    return median(mine / bare for mine, bare in zip(ours, raw, strict=True)) if raw else None
