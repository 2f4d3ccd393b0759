"""The axes of a chart: round numbers and lengths of time, powers of ten where values differ much, times of the day."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from math import floor, isclose, log10
from typing import NamedTuple

from django.conf import settings
from django.utils import timezone
from django.utils.dateformat import format as written
from django.utils.formats import number_format
from django.utils.translation import gettext, gettext_noop

#: From this ratio on a linear axis would press the small values flat on its floor.
WIDE = 100
#: An axis from zero has about so many steps.
STEPS = 4
#: Lengths of time that people call round, in seconds; shorter ones go by powers of ten.
ROUND = (1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400)
DAY = 86_400
#: The same for an axis on which each step is several times the one before.
GROWING = (1e-6, 1e-5, 1e-4, 0.001, 0.01, 0.1, 1, 10, 60, 600, 3600, 36_000, 864_000, 8_640_000, 86_400_000)


class Scale(NamedTuple):
    """From the foot of an axis to its top, with the values that are written beside it."""

    low: float
    high: float
    ticks: tuple[float, ...]
    logarithmic: bool = False

    def share(self, value: float) -> float:
        """How far up a value stands, from 0 to 1."""
        if self.logarithmic:
            found = log10(max(value, self.low) / self.low) / log10(self.high / self.low)
        else:
            found = (value - self.low) / (self.high - self.low)
        return min(max(found, 0.0), 1.0)


class Moments(NamedTuple):
    """The spans of a chart from left to right: how each is called, and at which shares of the way round times stand."""

    labels: tuple[str, ...]
    ticks: tuple[tuple[float, str], ...]


def counts(values: Iterable[float]) -> Scale:
    """Make an axis from zero for numbers; of whole ones no step is less than one."""
    known = list(values)
    step = _round(max(known, default=0) / STEPS)
    return _from_zero(max(known, default=0), max(step, 1) if all(map(float.is_integer, map(float, known))) else step)


def seconds(values: Iterable[float]) -> Scale:
    """Make an axis for lengths of time: from zero, or by powers of ten where the longest is many times the shortest."""
    known = [value for value in values if value > 0]
    most, least = max(known, default=1), min(known, default=1)
    if most / least > WIDE:
        low = max((one for one in GROWING if one <= least), default=GROWING[0])
        high = min((one for one in GROWING if one >= most), default=most)
        ticks = [one for one in GROWING if low <= one <= high]
        # More would be written over each other.
        return Scale(low, high, tuple(ticks[:: 1 + len(ticks) // 10]), logarithmic=True)
    wanted = most / STEPS
    return _from_zero(most, _round(wanted) if wanted < 1 else _round_seconds(wanted))


def _from_zero(most: float, step: float) -> Scale:
    # A tenth is not quite one as a float, so that three of them may miss 0.3 by a hair; whole steps are exact.
    hair = 0 if step >= 1 else 1e-9 * step
    number = max(int(-((hair - most) // step)), 1)
    return Scale(0, number * step, tuple(step * tick for tick in range(number + 1)))


def _round(least: float) -> float:
    """Find 1, 2 or 5 times a power of ten that is no less."""
    if least <= 0:
        return 1
    power = 10.0 ** floor(log10(least))
    return next(found for one in (1, 2, 5, 10) if (found := one * power) >= least * (1 - 1e-9))


def _round_seconds(least: float) -> float:
    return next((one for one in ROUND if one >= least), 0) or DAY * _round(least / DAY)


def number(value: float) -> str:
    """Write a number with as many decimals as make it right to three in a hundred; whole ones are exact."""
    places = next((one for one in range(9) if isclose(round(value, one), value, rel_tol=0.03)), 9)
    return number_format(round(value, places), places, force_grouping=True)


def brief(value: float) -> str:
    """Write seconds shortly, in the unit that suits them, on one line."""
    unit, size = next((one for one in _UNITS if value < one[2]), _UNITS[-1])[:2]
    return (gettext(unit) % {"count": number(value / size)}).replace(" ", "\N{NO-BREAK SPACE}")


#: How a length is written, in which unit, and up to which length it is.
_UNITS = (
    (gettext_noop("%(count)s s"), 1, 1e-9),
    (gettext_noop("%(count)s ms"), 0.001, 1),
    (gettext_noop("%(count)s s"), 1, 60),
    (gettext_noop("%(count)s min"), 60, 3600),
    (gettext_noop("%(count)s h"), 3600, 2 * DAY),
    (gettext_noop("%(count)s d"), DAY, float("inf")),
)


def here(moment: datetime) -> datetime:
    """Tell a moment in the reader's time zone."""
    return timezone.localtime(moment) if settings.USE_TZ else moment


def moments(begins: Sequence[datetime], span: timedelta) -> Moments:
    """Name spans that follow each other, and find the round times among them."""
    if not begins:
        return Moments((), ())
    length, first, end = span * len(begins), begins[0], begins[-1] + span
    way = next(one for one in _WAYS if length <= one.up_to)
    ticks = [((one - first) / length, written(here(one), way.tick)) for one in way.round(first) if first <= one <= end]
    return Moments(tuple(written(here(one), way.label) for one in begins), tuple(ticks))


def _quarters(first: datetime) -> Iterator[datetime]:
    """Go by quarters of an hour, which all zones have in common, whatever clocks are turned."""
    hour = here(first).replace(minute=0, second=0, microsecond=0).astimezone(UTC)
    for count in range(16):
        yield hour + count * timedelta(minutes=15)


def _every(hours: int) -> Callable[[datetime], Iterator[datetime]]:
    """Go by the hours that clocks show, so that midnight stays midnight when they are turned."""

    def found(first: datetime) -> Iterator[datetime]:
        day = here(first).replace(hour=0, minute=0, second=0, microsecond=0)
        for count in range(20):
            yield (day + count * timedelta(hours=hours)).astimezone(UTC)

    return found


class _Way(NamedTuple):
    """How time is written that is no longer than this: its spans, its round moments, and which those are."""

    up_to: timedelta
    label: str
    tick: str
    round: Callable[[datetime], Iterator[datetime]]


_WAYS = (
    _Way(timedelta(hours=2), "H:i", "H:i", _quarters),
    _Way(timedelta(days=2), "D H:i", "H:i", _every(6)),
    _Way(timedelta.max, "D H:i", "D", _every(24)),
)
