"""Tests of the evaluation: an alert fires once, ends once, doesn't flap, reminds, and is silent where it should."""

from __future__ import annotations

from dataclasses import replace

import pytest

from jobqueue import signals
from jobqueue.alert_settings import DELIVERY_QUEUE, DELIVERY_TYPE
from jobqueue.alerts import evaluate
from jobqueue.alerts.evaluation import evaluate_critical
from jobqueue.alerts.sights import MOST_OF_A_CAUSE
from jobqueue.observe.health import Cause, Finding, Level, Place, kinds
from jobqueue.records import Scope
from jobqueue.records.alert import AlertState, Silence
from jobqueue.testing.clock import NOON
from jobqueue.testing.contract.harness import bury, draft, put_all, take
from tests.alerts.conftest import HOUR, MINUTE, SECOND

QUEUE = "default"


@pytest.fixture
def many(backend):
    """A function that makes so many dead letters of a type."""

    def make(number, job_type="resize", **values):
        put_all(backend, *(draft(job_type, **values) for _ in range(number)))
        claims = take(backend, number, types=frozenset({job_type}), queues=None)
        for claim in claims:
            bury(backend, claim)
        return [one.id for one in claims]

    return make


def only(backend):
    (found,) = backend.alerts.open()
    return found


def pass_time(backend, clock, length, step=MINUTE):
    """Evaluate as a worker does, until that much time has passed."""
    for _ in range(int(length / step)):
        clock.advance(step)
        evaluate(backend)


def test_an_alert_fires_once_and_ends_once(backend, clock, many, told):
    ids = many(11)
    evaluate(backend)
    assert only(backend).state is AlertState.PENDING
    assert told() == []
    pass_time(backend, clock, MINUTE)
    assert told() == [("ops", "fired", ["dead_letters"])]
    alert = only(backend)
    assert (alert.facts.measured, alert.facts.threshold, alert.facts.level) == (11, 10, "error")
    assert alert.facts.sentence == "11 dead letters wait for a decision."
    assert set(alert.facts.examples) <= set(ids)
    assert len(alert.facts.examples) == 3
    pass_time(backend, clock, HOUR)
    assert told() == []
    backend.operator.purge(ids)
    pass_time(backend, clock, 5 * MINUTE)
    assert told() == []
    pass_time(backend, clock, MINUTE)
    assert told() == [("ops", "resolved", ["dead_letters"])]
    (past,) = backend.alerts.past()
    assert past.id == alert.id
    pass_time(backend, clock, HOUR)
    assert told() == []


def test_what_passes_before_its_time_is_not_told(backend, clock, many, told):
    ids = many(11)
    evaluate(backend)
    backend.operator.purge(ids)
    pass_time(backend, clock, HOUR)
    assert told() == []
    assert backend.alerts.open() == backend.alerts.past() == []


def test_what_comes_and_goes_is_one_alert(backend, clock, many, told):
    ids = []
    for _ in range(10):
        ids = many(11)
        pass_time(backend, clock, 2 * MINUTE)
        backend.operator.purge(ids)
        pass_time(backend, clock, 3 * MINUTE)
    assert [news for _channel, news, _keys in told()] == ["fired"]


def test_a_deeper_look_comes_when_time_alone_changes_something(backend, clock, many, configure):
    many(11)
    assert evaluate(backend).next_look == MINUTE
    clock.advance(MINUTE)
    assert evaluate(backend).next_look is None
    configure(remind=HOUR)
    assert evaluate(backend).next_look == HOUR


def test_reminders_come_by_choice(backend, clock, many, told, configure):
    configure(rules=[{"rule": "dead_letters", "remind": HOUR}])
    many(11)
    evaluate(backend)
    pass_time(backend, clock, 121 * MINUTE)
    assert [news for _channel, news, _keys in told()] == ["fired", "reminder", "reminder"]


def test_a_level_that_rises_is_told_once_more(backend, clock, told, settings):
    settings.JOBQUEUE = settings.JOBQUEUE | {"CAPACITY": 10}
    ids = put_all(backend, *(draft() for _ in range(8)))
    backend.operator.pause(Scope.QUEUE, QUEUE, "so that nothing else is wrong")
    evaluate(backend)
    pass_time(backend, clock, MINUTE)
    put_all(backend, *(draft() for _ in range(2)))
    pass_time(backend, clock, MINUTE)
    backend.operator.cancel(ids[:2])
    pass_time(backend, clock, MINUTE)
    put_all(backend, *(draft() for _ in range(2)))
    pass_time(backend, clock, MINUTE)
    keys = [key for _channel, news, keys in told() for key in keys if news == "fired" and "queue_full" in key]
    assert len(keys) == 2


@pytest.mark.parametrize("whole_rule", [True, False])
def test_a_silence_is_silent_until_it_ends(backend, clock, many, told, whole_rule):
    many(11)
    key = "dead_letters"
    backend.alerts.silence(Silence(key=key, until=backend.now() + HOUR, reason="we know"))
    evaluate(backend)
    pass_time(backend, clock, 59 * MINUTE)
    assert told() == []
    assert only(backend).state is AlertState.FIRING
    if whole_rule:
        backend.alerts.unsilence(key)
        evaluate(backend)
    pass_time(backend, clock, 2 * MINUTE)
    assert told() == [("ops", "fired", ["dead_letters"])]


def test_the_end_of_what_nobody_was_told_is_not_told(backend, clock, many, told):
    ids = many(11)
    backend.alerts.silence(Silence(key="dead_letters", until=backend.now() + 9 * HOUR, reason="we know"))
    evaluate(backend)
    pass_time(backend, clock, 3 * MINUTE)
    backend.operator.purge(ids)
    pass_time(backend, clock, HOUR)
    assert told() == []
    assert len(backend.alerts.past()) == 1


def test_rules_are_narrowed_to_queues_and_types(backend, clock, many, told, configure):
    configure(
        rules=[
            {"rule": "dead_letters", "type": "greet", "above": 0, "for": 0},
            {"rule": "dead_letters", "queue": "bulk", "level": "off"},
            {"rule": "died_lately", "level": "off"},
        ]
    )
    many(10)
    many(30, queue="bulk")
    evaluate(backend)
    pass_time(backend, clock, HOUR)
    assert told() == []
    many(1, "greet")
    evaluate(backend)
    ((_channel, news, (key,)),) = told()
    assert (news, key.partition(":")[0]) == ("fired", "dead_letters")
    assert only(backend).facts.type == "greet"


def test_channels_choose_the_level_and_the_end(backend, clock, many, told, configure):
    errors, first = {"via": "log", "level": "error"}, {"via": "log", "resolved": False}
    configure(channels={"errors": errors, "all": first}, rules=[{"rule": "dead_letters", "level": "warning"}])
    ids = many(11)
    evaluate(backend)
    pass_time(backend, clock, 2 * MINUTE)
    assert told() == [("all", "fired", ["dead_letters"])]
    backend.operator.purge(ids)
    pass_time(backend, clock, HOUR)
    assert told() == []


# Critical types


@pytest.fixture
def critical(monkeypatch):
    kind = type("Kind", (), {"name": "resize", "aliases": (), "critical": True})
    monkeypatch.setattr(kinds, "registry", type("Registry", (list,), {"names": frozenset()})([kind]))


def test_each_dead_letter_of_a_critical_type_is_told_at_once(backend, clock, many, told, critical):
    (first,) = many(1)
    evaluate_critical(backend)
    evaluate_critical(backend)
    (_channel, news, (key,)) = told()[0]
    assert (news, key.partition(":")[0]) == ("fired", "critical_dead")
    (second,) = many(1)
    evaluate_critical(backend)
    evaluate(backend)
    assert [news for _channel, news, _keys in told()] == ["fired"]
    assert {one.facts.job for one in backend.alerts.open()} == {first, second}
    backend.operator.purge([first])
    pass_time(backend, clock, HOUR)
    assert [(news, len(keys)) for _channel, news, keys in told()] == [("resolved", 1)]


def test_a_storm_is_one_message_and_few_alerts(backend, clock, many, told, critical):
    many(MOST_OF_A_CAUSE + 30)
    evaluate_critical(backend)
    ((_channel, news, keys),) = told()
    assert (news, len(keys)) == ("fired", MOST_OF_A_CAUSE + 1)
    assert "critical_dead:more" in keys
    many(5)
    evaluate_critical(backend)
    assert told() == []


def test_a_critical_look_ends_no_other_alert(backend, clock, many, told, critical):
    many(11, "greet")
    evaluate(backend)
    pass_time(backend, clock, MINUTE)
    told()
    for _ in range(5):
        clock.advance(HOUR)
        evaluate_critical(backend)
    assert told() == []
    assert only(backend).facts.cause == "dead_letters"


# What must not happen


def test_deliveries_that_fail_raise_no_alert(backend, clock, many, configure):
    many(50, DELIVERY_TYPE, queue=DELIVERY_QUEUE)
    put_all(backend, *(draft(DELIVERY_TYPE, queue=DELIVERY_QUEUE) for _ in range(50)))
    evaluate(backend)
    pass_time(backend, clock, 3 * HOUR, HOUR)
    assert backend.alerts.open() == backend.alerts.past() == []


def test_two_workers_that_saw_the_same_tell_once(backend, clock, many, told):
    many(11)
    evaluate(backend)
    clock.advance(MINUTE)
    real = backend.alerts.open
    seen = real()
    evaluate(backend)
    backend.alerts.open = lambda: seen  # as a worker that read before the other one stored
    late = evaluate(backend)
    assert (late.is_stored, late.next_look, late.told) == (False, SECOND, ())
    backend.alerts.open = real
    assert told() == [("ops", "fired", ["dead_letters"])]


def test_what_others_wrote_is_safe_to_send(backend, clock, configure):
    configure(rules=[{"rule": "paused", "level": "warning", "for": 0}])
    name = "x\x1b[31m\n\u202e\ud800" + "y" * 80
    backend.operator.pause(Scope.QUEUE, name, "password=hunter2horse\nBcc: all@example.com " + "z" * 5_000)
    evaluate(backend)
    alert = only(backend)
    assert alert.facts.cause == "paused"
    for text in (alert.facts.sentence, alert.facts.queue, alert.facts.advice):
        assert text.isprintable()
        assert len(text) <= 500
        assert "hunter2horse" not in text


def test_receivers_of_signals_are_a_channel(backend, clock, many, told, configure):
    configure(channels={}, every=300)
    many(11)

    def receive(**_facts):
        pass

    signals.alert_fired.connect(receive)
    try:
        evaluate(backend)
        pass_time(backend, clock, MINUTE)
    finally:
        signals.alert_fired.disconnect(receive)
    assert told() == [(":signal", "fired", ["dead_letters"])]


def test_a_key_stays_while_numbers_and_names_beside_it_change():
    deep = Finding(level=Level.WARNING, cause=Cause.QUEUE_DEEP, place=Place.QUEUED_JOBS, scope=("mail", ""))
    changed = replace(deep, level=Level.ERROR, queues=("mail",), types=("greet", "resize"), jobs=7, since=NOON)
    assert changed.key == deep.key
    others = [replace(deep, scope=("", "mail")), replace(deep, cause=Cause.OVERDUE, queues=("mail",))]
    others += [replace(deep, cause=Cause.OVERDUE, types=("mail",)), replace(deep, scope=())]
    assert len({one.key for one in (deep, *others)}) == 5
