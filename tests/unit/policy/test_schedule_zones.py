"""Slots over changes of the clock, compared with a calculation that tries every minute."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import takewhile
from zoneinfo import ZoneInfo

import pytest

from jobqueue.policy.schedules.rule import Cron

#: With zones of half and quarter hours, one that skipped a day, and some that changed their law.
ZONES = [
    *("Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Australia/Adelaide", "America/St_Johns"),
    *("Africa/Casablanca", "America/Sao_Paulo", "Pacific/Apia", "Asia/Pyongyang", "Pacific/Chatham"),
    *("Europe/Dublin", "Asia/Kolkata"),
]
FIXED = ["30 2 * * *", "0 0 * * *", "15,45 1,2 * * *", "0 3 * * *", "30 0 * * *"]
INTERVALS = ["*/15 * * * *", "*/15 3 * * *", "*/20 2 * * *", "10 */2 * * *", "0 * * * *"]
MINUTE = timedelta(minutes=1)


def changes(zone, years):
    """The minutes at which the zone's offset changes."""
    found = []
    for year in years:
        moment, end = datetime(year, 1, 1, tzinfo=UTC), datetime(year + 1, 1, 1, tzinfo=UTC)
        while moment < end:
            before, moment = moment, moment + timedelta(hours=6)
            if before.astimezone(zone).utcoffset() != moment.astimezone(zone).utcoffset():
                while before.astimezone(zone).utcoffset() == (before + MINUTE).astimezone(zone).utcoffset():
                    before += MINUTE
                found.append(before + MINUTE)
    return found


def fits(line, local):
    def field(part, value):
        if part == "*":
            return True
        return value % int(part[2:]) == 0 if part.startswith("*/") else str(value) in part.split(",")

    minute, hour = line.split()[:2]
    return field(minute, local.minute) and field(hour, local.hour)


def expected(line, zone, start, end, fixed):
    """Debian's rule: an interval runs wherever the wall clock fits; a fixed time once, at the change if it is left out.

    Walks over the minutes, and over the wall times that a change skips.
    """
    slots, wall, moment, latest = [], None, start, None
    while moment <= end:
        local = moment.astimezone(zone).replace(tzinfo=None)
        skipped = []
        if fixed and wall is not None:
            skipped = [wall + MINUTE * number for number in range(1, int((local - wall) / MINUTE))]
        repeats = fixed and latest is not None and local <= latest
        if (fits(line, local) and not repeats) or any(fits(line, one) for one in skipped):
            slots.append(moment)
        wall, latest, moment = local, local if latest is None else max(latest, local), moment + MINUTE
    return slots


@pytest.mark.parametrize("name", ZONES)
def test_slots_over_changes_of_the_clock_are_those_of_debians_cron(name):
    zone = ZoneInfo(name)
    around = timedelta(hours=27)
    for change in changes(zone, (2011, 2018, 2026)):
        for line in FIXED + INTERVALS:
            wanted = expected(line, zone, change - around, change + around, line in FIXED)
            start = change - around - MINUTE
            found = list(takewhile(lambda slot: slot <= change + around, Cron(line, name).after(start)))  # noqa: B023
            assert found == wanted, f"{line} at {change}"
            for since in (change - timedelta(minutes=20), change, change + timedelta(minutes=20)):
                later = list(takewhile(lambda slot: slot <= change + around, Cron(line, name).after(since)))  # noqa: B023
                assert later == [slot for slot in wanted if slot > since], f"{line} after {since}"
