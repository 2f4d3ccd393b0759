"""Histograms of durations, from which any percentile can be read. Pure.

Each bucket ends 19 % above its start, a factor of the fourth root of two. A percentile is the middle of a bucket, so it
is off by at most 9.1 % from the exact percentile (by nearest rank). This holds for durations from 0.1 ms to years.
Shorter durations count as zero.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import ceil, log2

from jobqueue.records import Lengths

_TO_DOUBLE = 4
#: Durations shorter than this many seconds aren't distinguished.
SHORTEST = 0.0001
#: The factor by which a percentile may be off, either way.
ERROR = 2 ** (1 / (2 * _TO_DOUBLE))

#: The valid names of buckets. Ten years are far below the last bucket.
_NAMES = frozenset(map(str, range(1_000)))

_FIRST = 1 - _TO_DOUBLE * log2(SHORTEST)
#: Floats can't represent shares such as 0.95 exactly.
_ROUNDING = 1e-9


def bucket(seconds: float) -> int:
    """Return the bucket of a duration. Durations shorter than ``SHORTEST``, or negative, are in bucket 0."""
    return int(_TO_DOUBLE * log2(seconds) + _FIRST) if seconds > SHORTEST else 0


def buckets(several: Iterable[float]) -> list[int]:
    """Return the buckets of many durations, without a call for each."""
    return [int(_TO_DOUBLE * log2(seconds) + _FIRST) if seconds > SHORTEST else 0 for seconds in several]


def percentile(histogram: Mapping[int, int], share: float) -> float | None:
    """Return a percentile, such as the 95th for a ``share`` of 0.95, accurate to a factor of ``ERROR``."""
    rank = max(1, ceil(share * sum(histogram.values()) - _ROUNDING))
    for place in sorted(histogram):
        rank -= histogram[place]
        if rank <= 0:
            return _middle(place)
    return None


def up_to(histogram: Mapping[int, int], seconds: float) -> int:
    """Return how many durations are at most this long: a bound within 10 %, because it is that of a bucket."""
    last = round(_TO_DOUBLE * log2(seconds / SHORTEST))
    return sum(count for place, count in histogram.items() if place <= last)


def _middle(place: int) -> float:
    return 2 ** ((place + 0.5 - _FIRST) / _TO_DOUBLE) if place else 0.0


def merged(several: Iterable[Lengths]) -> Lengths:
    """Return the sum of histograms."""
    buckets: dict[int, int] = {}
    total = 0.0
    for one in several:
        for place, count in one.buckets.items():  # a Counter takes half as long again
            buckets[place] = buckets.get(place, 0) + count
        total += one.total
    return Lengths(buckets, total)


def written(histogram: Mapping[int, int]) -> dict[str, int]:
    """Return a histogram as JSON data: counts by bucket."""
    return {str(place): count for place, count in sorted(histogram.items())}


def read(*values: object) -> dict[int, int]:
    """Parse one or several histograms from ``written``, and add them up.

    Values in a form that a newer release or another program wrote are ignored.
    """
    counts: dict[str, int] = {}
    for value in values:
        for name, count in value.items() if isinstance(value, Mapping) else ():
            if type(count) is int and count > 0 and name in _NAMES:
                counts[name] = counts.get(name, 0) + count
    return {int(name): count for name, count in counts.items()}
