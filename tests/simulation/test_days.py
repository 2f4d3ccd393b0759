"""Ordinary days: the evaluation of the queue's health raises no alarm, and then it does within seconds."""

from __future__ import annotations

from datetime import timedelta
from functools import partial

import pytest

from jobqueue import conf
from jobqueue.observe.health import Cause, observation
from tests.simulation.days import DAY, HOUR, MINUTE, STEP, TYPES, Days

#: What may be said on an ordinary day, and is no alarm: a pause while it lasts, and dead letters that wait.
NO_ALARM = {Cause.PAUSED, Cause.DEAD_LETTERS}


@pytest.fixture(autouse=True)
def types(monkeypatch):
    """A release with handlers for the types of these days."""
    monkeypatch.setattr(observation, "registry", type("Registry", (), {"names": TYPES}))
    conf.get.cache_clear()


def ordinary(seed, days=2):
    """Plan what happens on ordinary days."""
    found = Days(seed)
    for day in range(days):
        today = day * DAY
        found.at(today + 2 * HOUR, partial(found.burst, "report", 300, None))
        deploy(found, today + 9 * HOUR, one_by_one=True)
        found.at(today + 10 * HOUR, partial(found.pause, "mail"))
        found.at(today + 10 * HOUR + 12 * MINUTE, partial(found.resume, "mail"))
        found.at(today + 11 * HOUR, partial(found.burst, "mail", 1_200, "tenant-1"))
        hiccup(found, today + 13 * HOUR, "mail")
        deploy(found, today + 15 * HOUR, one_by_one=False)
        hiccup(found, today + 16 * HOUR, "resize")
        found.at(today + 17 * HOUR, partial(found.pause, "images"))
        found.at(today + 17 * HOUR + 5 * MINUTE, partial(found.resume, "images"))
        deploy(found, today + 19 * HOUR, one_by_one=True)
    return found


def deploy(found, when, *, one_by_one):
    """Restart the workers: each stops, ends, and its successor starts ten seconds later."""
    for place in (0, 1):
        begin = when + 2 * MINUTE * place if one_by_one else when
        for after, act in ((0, found.stop), (STEP, found.replace), (2 * STEP, found.begin)):
            found.at(begin + (after or timedelta(0)), partial(act, place))
    found.due_events = type(found.due_events)(sorted(found.due_events, key=lambda one: one[0]))


def hiccup(found, when, name):
    """Have half of the attempts of a type fail for half a minute."""
    usual = found.fails[name]
    found.at(when, partial(found.fails.__setitem__, name, 0.5))
    found.at(when + 30 * MINUTE / 60, partial(found.fails.__setitem__, name, usual))


@pytest.mark.parametrize("seed", [2])
def test_two_ordinary_days_raise_no_alarm(seed):
    days = ordinary(seed)
    days.live(2 * DAY)
    assert [(str(when), one.cause.value, one.types) for when, one in days.alarms][:9] == []
    assert days.alerts == days.backend.alerts.open() == []
    assert set(days.said) <= NO_ALARM
    assert days.said[Cause.PAUSED]  # or these days were too quiet
    assert days.said[Cause.DEAD_LETTERS]


#: What goes wrong on an ordinary day, and the alarm.
INCIDENTS = {
    "every mail fails": (lambda days: days.fails.__setitem__("mail", 1.0), Cause.FAILING),
    "a third of the images fail": (lambda days: days.fails.__setitem__("resize", 0.4), Cause.FAILING),
    "one worker is killed": (lambda days: days.kill(0), Cause.WORKER_SILENT),
    "all workers are killed": (lambda days: [days.kill(0), days.kill(1)], Cause.NO_WORKER),
    "the workers are stopped for good": (lambda days: [days.replace(0), days.replace(1)], Cause.NO_WORKER),
    "a tenant floods the mail": (lambda days: days.burst("mail", 5_000, "tenant-1"), Cause.TENANT_FLOOD),
}
#: How long it may take. A lease has to end first, and a share or a backlog has to build up.
WITHIN = {
    Cause.FAILING: 10 * MINUTE,
    Cause.WORKER_SILENT: 80 * MINUTE / 60,
    Cause.NO_WORKER: 140 * MINUTE / 60,
    Cause.TENANT_FLOOD: 6 * MINUTE,
}


@pytest.mark.parametrize("name", INCIDENTS)
def test_an_incident_on_an_ordinary_day_raises_its_alarm(name):
    act, cause = INCIDENTS[name]
    days = Days(3)
    days.clock.advance(12 * HOUR)
    days.live(5 * MINUTE)
    assert days.alarms == []
    act(days)
    days.live(WITHIN[cause], look_every=1)
    assert cause in {one.cause for _when, one in days.alarms}
