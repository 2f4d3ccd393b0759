"""Rules: when the slots of a schedule are."""

from __future__ import annotations

import re
from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import count
from typing import Protocol
from zoneinfo import ZoneInfo, available_timezones

from cronsim import CronSim, CronSimError

from jobqueue.errors import InvalidOption
from jobqueue.policy.nearest import did_you_mean
from jobqueue.policy.schedules.zones import fixed_slots, interval_slots

SHORTEST, LONGEST = timedelta(seconds=1), timedelta(days=366)
LONGEST_LINE = 200
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NAMED = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_UNITS = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}
_UNIT_NAMES = {"d": "day", "h": "hour", "m": "minute", "s": "second"}
_EVERY = re.compile(r"every\s+(\d{1,9})\s*([smhd])", re.IGNORECASE)
_FIELDS = {
    "second": "0 to 59",
    "minute": "0 to 59",
    "hour": "0 to 23",
    "day-of-month": "1 to 31, L (the last day) or LW (the last weekday)",
    "month": "1 to 12 or JAN to DEC",
    "day-of-week": "0 to 7 or SUN to SAT, 5L (the last Friday) or 1#2 (the second Monday)",
}


class Rule(Protocol):
    """What ``Cron`` and ``Every`` have in common."""

    @property
    def text(self) -> str:
        """Return the rule as it is stored and shown."""
        ...

    @property
    def tz(self) -> str | None:
        """Return the name of the rule's time zone, or ``None`` for the project's."""
        ...

    def after(self, moment: datetime) -> Iterator[datetime]:
        """Yield the slots after a moment in UTC, the earliest first."""
        ...

    def in_words(self) -> str:
        """Return the rule as a phrase such as "at 03:00 every day"."""
        ...


@dataclass(frozen=True)
class Cron:
    """Slots by a cron line of five fields, of six with seconds first, or a name such as ``@daily``.

    ``tz`` is the time zone in which the line is read; by default it is ``TIME_ZONE``. As in Debian's cron, a line with
    fixed hours and minutes runs once when clocks change, and a line with ``*`` in either keeps its interval.
    """

    expr: str
    tz: str | None = None

    def __post_init__(self) -> None:
        given: object = self.expr
        if not isinstance(given, str) or not self.expr.strip() or len(self.expr) > LONGEST_LINE:
            raise InvalidOption("The cron line", f"must be a text of at most {LONGEST_LINE} characters")
        line = " ".join(self._line.split())
        if self.expr.strip().startswith("@") and line not in _NAMED.values():
            raise InvalidOption(f"The cron line {self.expr!r}", f"is unknown. {did_you_mean(self.expr, _NAMED)}")
        if self.tz is not None:
            zone_of(self.tz)
        _check(self.expr, line)

    @property
    def _line(self) -> str:
        given = self.expr.strip()
        return _NAMED.get(given.lower(), given)

    @property
    def five_fields(self) -> str | None:
        """Return the line as any cron reads it, or ``None`` if it needs more than that: seconds, ``L`` or ``#``."""
        parts = self._line.upper().split()
        has_seconds = len(parts) == 6 and not parts[0].isdigit()
        if has_seconds or re.search("[LW]", parts[-3]) or re.search("#|[0-9]L", parts[-1]):
            return None
        return " ".join(parts[-5:])

    @property
    def text(self) -> str:
        """Return the line with single spaces."""
        return " ".join(self.expr.split())

    def after(self, moment: datetime) -> Iterator[datetime]:
        """Yield the slots after a moment in UTC, the earliest first."""
        zone, parts = zone_of(self.tz or "UTC"), self._line.split()
        if len(parts) == 6 and not parts[0].isdigit():
            return interval_slots(" ".join(parts), zone, moment)
        seconds = timedelta(seconds=int(parts[0])) if len(parts) == 6 else timedelta(0)
        minute, hour = parts[-5], parts[-4]
        slots = interval_slots if minute.startswith("*") or hour.startswith("*") else fixed_slots
        return (slot + seconds for slot in slots(" ".join(parts[-5:]), zone, moment - seconds))

    def in_words(self) -> str:
        """Return cronsim's description."""
        words: str = CronSim(self._line, _EPOCH).explain()
        return words[:1].lower() + words[1:]


def _check(given: str, line: str) -> None:
    """Raise InvalidOption for a line that cronsim can't read, or that never fires."""
    about = f"The cron line {given!r}"
    parts = line.split()
    if len(parts) not in (5, 6):
        raise InvalidOption(about, f"has {len(parts)} fields; it needs five, or six with seconds first")
    try:
        if next(CronSim(line, datetime(2026, 1, 1)), None) is None:  # noqa: DTZ001 - local time
            raise InvalidOption(about, "never fires: no such day exists")
    except CronSimError as error:
        name = str(error).removeprefix("Bad ")
        if name == "day-of-month" and _reads(" ".join([*parts[:-2], "*", parts[-1]])):
            raise InvalidOption(about, "never fires: none of its months has such a day") from None
        part = ([None] * (6 - len(parts)) + parts)[[*_FIELDS].index(name)] if name in _FIELDS else line
        raise InvalidOption(about, f"has a bad {name} field {part!r}; it takes {_FIELDS.get(name, '')}") from None
    except (ValueError, AssertionError, OverflowError):
        raise InvalidOption(about, "can't be read") from None


def _reads(line: str) -> bool:
    try:
        CronSim(line, _EPOCH)
    except (CronSimError, ValueError, AssertionError):
        return False
    return True


@dataclass(frozen=True)
class Every:
    """Slots at a fixed interval, counted from ``start`` of the schedule, or from 1970 in UTC."""

    days: int = 0
    hours: int = 0
    minutes: int = 0
    seconds: int = 0
    tz: str | None = None
    _anchor: datetime = field(default=_EPOCH, init=False, repr=False)

    def __post_init__(self) -> None:
        for name in ("days", "hours", "minutes", "seconds"):
            if type(getattr(self, name)) is not int or not 0 <= getattr(self, name) <= LONGEST.total_seconds():
                raise InvalidOption(f"Every({name}=…)", f"must be a whole number, got {getattr(self, name)!r}")
        if not SHORTEST <= self.interval <= LONGEST:
            raise InvalidOption("Every(…)", f"must be from 1 second to {LONGEST.days} days, got {self.interval}")
        if self.tz is not None:
            zone_of(self.tz)

    @property
    def interval(self) -> timedelta:
        """Return the time between two slots."""
        return timedelta(days=self.days, hours=self.hours, minutes=self.minutes, seconds=self.seconds)

    @property
    def text(self) -> str:
        """Return ``every 15m``."""
        number, unit = self._largest
        return f"every {number}{unit}"

    @property
    def _largest(self) -> tuple[int, str]:
        seconds = int(self.interval.total_seconds())
        unit = next(unit for unit, size in _UNITS.items() if seconds % size == 0)
        return seconds // _UNITS[unit], unit

    def after(self, moment: datetime) -> Iterator[datetime]:
        """Yield the slots after a moment in UTC, the earliest first."""
        passed = (moment - self._anchor) // self.interval
        return (self._anchor + number * self.interval for number in count(max(0, passed + 1)))

    def counted_from(self, start: datetime) -> Every:
        """Return the same interval, counted from another moment, before which there are no slots."""
        made = copy(self)
        object.__setattr__(made, "_anchor", start)
        return made

    def in_words(self) -> str:
        """Return ``every 15 minutes``."""
        number, unit = self._largest
        name = _UNIT_NAMES[unit]
        return f"every {name}" if number == 1 else f"every {number} {name}s"


def read_rule(text: str, tz: str, start: datetime | None = None) -> Rule:
    """Read a stored rule. Raise InvalidOption if it is wrong."""
    found = _EVERY.fullmatch(text.strip())
    if not found:
        return Cron(text, tz)
    rule = Every(seconds=int(found[1]) * _UNITS[found[2].lower()], tz=tz)
    return rule.counted_from(start) if start else rule


@lru_cache(maxsize=1_000)
def zone_of(name: str) -> ZoneInfo:
    """Return a time zone. Raise InvalidOption, with the nearest name, if there is none."""
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError, TypeError):
        near = did_you_mean(name, available_timezones(), "Names are like 'Europe/Berlin'.")
        raise InvalidOption("tz", f"names no time zone: {name!r}. {near}") from None
