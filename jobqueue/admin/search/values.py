"""The moments and numbers of a query: one of them, or all from one to another."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from django.utils.translation import gettext

from jobqueue.admin.search.combine import BadQuery
from jobqueue.admin.search.tokens import TO
from jobqueue.clock import SYSTEM
from jobqueue.durations import LONGEST_DURATION
from jobqueue.handlers.options import FIRST_MOMENT, LAST_MOMENT, in_utc
from jobqueue.records import LARGEST_SOUGHT, Range

_LENGTH = re.compile(r"([0-9]{1,9})([smhdw])")
#: No time zone is further from UTC.
_DAY = timedelta(days=1)
_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_NUMBER = re.compile(r"[0-9]{1,9}")
_COMPARED = re.compile(r"(<=|>=|<|>)([0-9]{1,9})")


def read_moments(text: str) -> tuple[datetime | None, datetime | None]:
    """Read a time, which means since then, or two with dots between them, of which one may be missing."""
    first, is_range, last = text.partition(TO)
    if not is_range:
        return read_moment(text), None
    if not first and not last:
        raise _no_moment(text)
    return read_moment(first) if first else None, read_moment(last) if last else None


def read_moment(text: str) -> datetime:
    """Read an ISO 8601 date or time, or how long ago it was. Without an offset it is in the project's time zone."""
    if found := _LENGTH.fullmatch(text.lower()):
        length = timedelta(seconds=int(found[1]) * _SECONDS[found[2]])
        if length <= LONGEST_DURATION:
            return SYSTEM.now() - length
    try:
        if moment := in_utc(_within_time(datetime.fromisoformat(text))):
            return moment
    except (ValueError, OverflowError):
        pass
    raise _no_moment(text)


def _no_moment(text: str) -> BadQuery:
    why = gettext("“%(text)s” is not a time. Write how long ago it was, such as 15m, 2h or 3d, or a date: 2026-01-31.")
    return BadQuery(why % {"text": text})


def _within_time(moment: datetime) -> datetime:
    """Return the nearest moment that every time zone can say: no job was created before them all, or after."""
    if moment.tzinfo is not None:
        return min(max(moment.astimezone(UTC), FIRST_MOMENT), LAST_MOMENT)
    first, last = FIRST_MOMENT.replace(tzinfo=None) + _DAY, LAST_MOMENT.replace(tzinfo=None) - _DAY
    return min(max(moment, first), last)


def read_range(text: str) -> Range:
    """Read a number, two with dots between them, of which one may be missing, or one after ``<`` or ``>``."""
    if found := _COMPARED.fullmatch(text):
        sign, number = found[1], int(found[2])
        if (sign == "<" and number == 0) or (sign == ">" and number + 1 == LARGEST_SOUGHT):
            raise _no_range(text)
        return Range(number + (sign == ">")) if sign[0] == ">" else Range(0, number - (sign == "<"))
    first, is_range, last = text.partition(TO)
    given = [one for one in (first, last) if one]
    if not given or not all(map(_NUMBER.fullmatch, given)):
        raise _no_range(text)
    least, most = int(first or 0), int(last or (LARGEST_SOUGHT if is_range else first))
    if least > most:
        raise _no_range(text)
    return Range(least, most)


def _no_range(text: str) -> BadQuery:
    why = gettext("“%(text)s” is neither a number nor a range. Write 3, 1..3, >3 or <3.")
    return BadQuery(why % {"text": text})
