"""The axes of a chart: numbers, durations and times of day, with round ticks."""

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

#: From this ratio of the largest to the smallest value on, the axis is logarithmic.
WIDE = 100
#: About how many steps an axis from zero has.
STEPS = 4
#: Round durations in seconds. Shorter ones use powers of ten.
ROUND = (1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400)
DAY = 86_400
#: Round durations for a logarithmic axis.
GROWING = (1e-6, 1e-5, 1e-4, 0.001, 0.01, 0.1, 1, 10, 60, 600, 3600, 36_000, 864_000, 8_640_000, 86_400_000)


class Scale(NamedTuple):
    """The range of an axis and its ticks."""

    low: float
    high: float
    ticks: tuple[float, ...]
    logarithmic: bool = False

    def share(self, value: float) -> float:
        """Return the position of a value on the axis, from 0 to 1."""
        if self.logarithmic:
            found = log10(max(value, self.low) / self.low) / log10(self.high / self.low)
        else:
            found = (value - self.low) / (self.high - self.low)
        return min(max(found, 0.0), 1.0)


class Moments(NamedTuple):
    """The time axis of a chart: the labels of its spans, and its ticks as positions from 0 to 1 with labels."""

    labels: tuple[str, ...]
    ticks: tuple[tuple[float, str], ...]


def counts(values: Iterable[float]) -> Scale:
    """Make an axis from zero for numbers. For whole numbers, a step is at least one."""
    known = list(values)
    step = _round(max(known, default=0) / STEPS)
    return _from_zero(max(known, default=0), max(step, 1) if all(map(float.is_integer, map(float, known))) else step)


def seconds(values: Iterable[float]) -> Scale:
    """Make an axis for durations: linear from zero, or logarithmic if they differ widely."""
    known = [value for value in values if value > 0]
    most, least = max(known, default=1), min(known, default=1)
    if most / least > WIDE:
        low = max((one for one in GROWING if one <= least), default=GROWING[0])
        high = min((one for one in GROWING if one >= most), default=most)
        ticks = [one for one in GROWING if low <= one <= high]
        # More labels would overlap.
        return Scale(low, high, tuple(ticks[:: 1 + len(ticks) // 10]), logarithmic=True)
    wanted = most / STEPS
    return _from_zero(most, _round(wanted) if wanted < 1 else _round_seconds(wanted))


def _from_zero(most: float, step: float) -> Scale:
    # Floats are inexact: three steps of 0.1 may miss 0.3 by a hair. Whole steps are exact.
    hair = 0 if step >= 1 else 1e-9 * step
    number = max(int(-((hair - most) // step)), 1)
    return Scale(0, number * step, tuple(step * tick for tick in range(number + 1)))


def _round(least: float) -> float:
    """Round up to 1, 2 or 5 times a power of ten."""
    if least <= 0:
        return 1
    power = 10.0 ** floor(log10(least))
    return next(found for one in (1, 2, 5, 10) if (found := one * power) >= least * (1 - 1e-9))


def _round_seconds(least: float) -> float:
    return next((one for one in ROUND if one >= least), 0) or DAY * _round(least / DAY)


def number(value: float) -> str:
    """Format a number, with the decimals needed to be within 3 %. Whole numbers are exact."""
    places = next((one for one in range(9) if isclose(round(value, one), value, rel_tol=0.03)), 9)
    return number_format(round(value, places), places, force_grouping=True)


def brief(value: float) -> str:
    """Format seconds in a suitable unit, without a line break."""
    unit, size = next((one for one in _UNITS if value < one[2]), _UNITS[-1])[:2]
    return (gettext(unit) % {"count": number(value / size)}).replace(" ", "\N{NO-BREAK SPACE}")


#: The format of a duration, the size of its unit in seconds, and the duration up to which it is used.
_UNITS = (
    (gettext_noop("%(count)s s"), 1, 1e-9),
    (gettext_noop("%(count)s ms"), 0.001, 1),
    (gettext_noop("%(count)s s"), 1, 60),
    (gettext_noop("%(count)s min"), 60, 3600),
    (gettext_noop("%(count)s h"), 3600, 2 * DAY),
    (gettext_noop("%(count)s d"), DAY, float("inf")),
)


def here(moment: datetime) -> datetime:
    """Convert a time to the current time zone."""
    return timezone.localtime(moment) if settings.USE_TZ else moment


def moments(begins: Sequence[datetime], span: timedelta) -> Moments:
    """Make the time axis for consecutive spans."""
    if not begins:
        return Moments((), ())
    length, first, end = span * len(begins), begins[0], begins[-1] + span
    way = next(one for one in _WAYS if length <= one.up_to)
    ticks = [((one - first) / length, written(here(one), way.tick)) for one in way.round(first) if first <= one <= end]
    return Moments(tuple(written(here(one), way.label) for one in begins), tuple(ticks))


def _quarters(first: datetime) -> Iterator[datetime]:
    """Yield quarters of an hour, which are round in all time zones."""
    hour = here(first).replace(minute=0, second=0, microsecond=0).astimezone(UTC)
    for count in range(16):
        yield hour + count * timedelta(minutes=15)


def _every(hours: int) -> Callable[[datetime], Iterator[datetime]]:
    """Yield full hours of local time, so that midnight stays midnight when daylight saving time changes."""

    def found(first: datetime) -> Iterator[datetime]:
        day = here(first).replace(hour=0, minute=0, second=0, microsecond=0)
        for count in range(20):
            yield (day + count * timedelta(hours=hours)).astimezone(UTC)

    return found


class _Way(NamedTuple):
    """The format of a time axis up to a length: its labels, its ticks, and which times are ticks."""

    up_to: timedelta
    label: str
    tick: str
    round: Callable[[datetime], Iterator[datetime]]


_WAYS = (
    _Way(timedelta(hours=2), "H:i", "H:i", _quarters),
    _Way(timedelta(days=2), "D H:i", "H:i", _every(6)),
    _Way(timedelta.max, "D H:i", "D", _every(24)),
)
