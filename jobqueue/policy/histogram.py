"""Lengths of time, counted in buckets that grow with them: a few numbers that tell any percentile. Pure.

A bucket ends 19 % above where it begins (the fourth root of two), and stands for the middle of that. So a percentile is
off by at most 9.1 % of itself, whatever was measured, from 0.1 ms to years; what is shorter counts as nothing. That is
against the exact percentile by nearest rank: the length that at least such a share of all lengths does not exceed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import ceil, log2

from jobqueue.records import Lengths

_TO_DOUBLE = 4
#: What is shorter is not told apart.
SHORTEST = 0.0001
#: By what factor a percentile may be off, either way.
ERROR = 2 ** (1 / (2 * _TO_DOUBLE))

#: The buckets there are: that of ten years is far below the last.
_NAMES = frozenset(map(str, range(1_000)))

_FIRST = 1 - _TO_DOUBLE * log2(SHORTEST)
#: Shares are fractions such as 0.95, which no float is exactly.
_TRIFLE = 1e-9


def bucket(seconds: float) -> int:
    """Say into which bucket a length falls; what is shorter than ``SHORTEST``, or negative, into the one named 0."""
    return int(_TO_DOUBLE * log2(seconds) + _FIRST) if seconds > SHORTEST else 0


def buckets(several: Iterable[float]) -> list[int]:
    """Say it of many lengths at once, without a call for each."""
    return [int(_TO_DOUBLE * log2(seconds) + _FIRST) if seconds > SHORTEST else 0 for seconds in several]


def percentile(histogram: Mapping[int, int], share: float) -> float | None:
    """Tell the length in seconds that such a share of all does not exceed, off by the factor ``ERROR`` at most."""
    rank = max(1, ceil(share * sum(histogram.values()) - _TRIFLE))
    for place in sorted(histogram):
        rank -= histogram[place]
        if rank <= 0:
            return _middle(place)
    return None


def _middle(place: int) -> float:
    return 2 ** ((place + 0.5 - _FIRST) / _TO_DOUBLE) if place else 0.0


def merged(several: Iterable[Lengths]) -> Lengths:
    """Put what was counted apart together."""
    buckets: dict[int, int] = {}
    total = 0.0
    for one in several:
        for place, count in one.buckets.items():  # which takes a Counter half as long again
            buckets[place] = buckets.get(place, 0) + count
        total += one.total
    return Lengths(buckets, total)


def written(histogram: Mapping[int, int]) -> dict[str, int]:
    """Spell out a histogram as JSON has it: how many by bucket."""
    return {str(place): count for place, count in sorted(histogram.items())}


def read(*values: object) -> dict[int, int]:
    """Read what ``written`` spelled out, of one histogram or of several that are put together.

    What a newer release, or another program, has written in another form counts for nothing.
    """
    counts: dict[str, int] = {}
    for value in values:
        for name, count in value.items() if isinstance(value, Mapping) else ():
            if type(count) is int and count > 0 and name in _NAMES:
                counts[name] = counts.get(name, 0) + count
    return {int(name): count for name, count in counts.items()}
