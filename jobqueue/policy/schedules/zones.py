"""Cron lines in time zones, as Debian's cron treats changes of the clock.

cronsim walks along local times without a zone. It is not given the zone, because in zones whose offset changes by other
lengths than an hour it loses slots, and where a day was skipped it doesn't return.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from cronsim import CronSim

_SECOND = timedelta(seconds=1)
#: The offsets of a zone differ by less than this.
_MOST = timedelta(hours=26)


def fixed_slots(line: str, zone: ZoneInfo, moment: datetime) -> Iterator[datetime]:
    """Yield slots at fixed times. The slot of a skipped time is at the change; a time that comes twice has one slot."""
    last = moment
    for local in CronSim(line, _local(moment, zone)):
        slot = local.replace(tzinfo=zone).astimezone(UTC)
        if slot.astimezone(zone).replace(tzinfo=None) != local:
            slot = _change(slot - _MOST, slot, zone)
        if slot > last:
            yield slot
            last = slot


def interval_slots(line: str, zone: ZoneInfo, moment: datetime) -> Iterator[datetime]:
    """Yield slots whenever the local time matches, even twice."""
    offset, changed = _offset(moment, zone), True
    while changed:
        changed = False
        for local in CronSim(line, (moment + offset).replace(tzinfo=None)):
            slot = (local - offset).replace(tzinfo=UTC)
            if _offset(slot, zone) != offset:
                # The clock changed on the way. No slot of another offset lies further back than offsets can differ.
                back = max(moment, slot - _MOST)
                change = _change(back, slot, zone) if _offset(back, zone) == offset else back
                moment, offset, changed = change - _SECOND, _offset(change, zone), True
                break
            yield slot


def _local(moment: datetime, zone: ZoneInfo) -> datetime:
    return moment.astimezone(zone).replace(tzinfo=None)


def _offset(moment: datetime, zone: ZoneInfo) -> timedelta:
    return moment.astimezone(zone).utcoffset() or timedelta(0)


def _change(before: datetime, after: datetime, zone: ZoneInfo) -> datetime:
    """Return the first whole second with another offset than ``before`` has."""
    offset = _offset(before, zone)
    before, after = before.replace(microsecond=0), after.replace(microsecond=0)
    while after - before > _SECOND:
        middle = before + (after - before) // 2
        middle = middle.replace(microsecond=0)
        if _offset(middle, zone) == offset:
            before = middle
        else:
            after = middle
    return after
