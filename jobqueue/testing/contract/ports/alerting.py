"""Tests of the alerts: one is open for each problem, and a change is stored with the jobs that tell of it, or not."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from jobqueue.backends.base import Backend
from jobqueue.records.alert import AlertChange, AlertFacts, AlertRecord, AlertState, SentTo, Silence
from jobqueue.testing.clock import NOON, VirtualClock
from jobqueue.testing.contract.harness import Contract, draft, together

HOUR = timedelta(hours=1)
FACTS = AlertFacts(
    cause="queue_deep",
    level="warning",
    sentence="The queue mail is deep.",
    measured=1_200.0,
    threshold=1_000.0,
    page="queued_jobs",
    queue="mail",
    examples=("7", "8"),
)


def alert(alert_id: str = "one", key: str = "queue_deep:1", **values: object) -> AlertRecord:
    """Return an alert that fires."""
    usual: dict[str, object] = {"state": AlertState.FIRING, "level": 2, "facts": FACTS, "began_at": NOON}
    usual |= {"seen_at": NOON, "fired_at": NOON}
    return AlertRecord(id=alert_id, key=key, **usual | values)  # type: ignore[arg-type]


def change(before: AlertRecord | None, after: AlertRecord | None) -> AlertChange:
    """Return a change."""
    return AlertChange(before=before, after=after)


def only(backend: Backend) -> AlertRecord:
    """Return the only open alert."""
    (found,) = backend.alerts.open()
    return found


class AlertContract(Contract):
    """Tests of alerts and silences."""

    def test_an_alert_is_read_as_it_was_stored(self, backend: Backend) -> None:
        stored = alert(told_at=NOON, reminded_at=NOON, sent=(SentTo("ops", "fired", "7"),))
        assert backend.alerts.open() == []
        assert backend.alerts.store([change(None, stored)])
        assert only(backend) == backend.alerts.get("one") == stored
        assert backend.alerts.get("two") is None

    def test_an_alert_and_the_jobs_that_tell_of_it_are_stored_together(self, backend: Backend) -> None:
        told = draft()
        assert backend.alerts.store([change(None, alert())], [told])
        assert backend.jobs.get(told.id) is not None
        again, other = draft(), alert("three", "queue_deep:3")
        assert not backend.alerts.store([change(None, other), change(None, alert("two"))], [again])
        assert backend.jobs.get(again.id) is None
        assert only(backend).id == "one"

    def test_an_alert_that_was_changed_meanwhile_is_not_changed(self, backend: Backend) -> None:
        backend.alerts.store([change(None, alert())])
        read = only(backend)
        assert backend.alerts.store([change(read, replace(read, level=3))])
        assert not backend.alerts.store([change(read, replace(read, level=1))], [draft()])
        assert not backend.alerts.store([change(read, None)])
        assert only(backend).level == 3
        assert backend.alerts.store([change(only(backend), None)])
        assert backend.alerts.open() == []

    def test_a_resolved_alert_is_past_and_its_problem_may_come_back(
        self, backend: Backend, clock: VirtualClock
    ) -> None:
        for name in ("one", "two"):
            backend.alerts.store([change(None, alert(name))])
            read = only(backend)
            over = replace(read, state=AlertState.RESOLVED, resolved_at=backend.now())
            assert backend.alerts.store([change(read, over)])
            assert not backend.alerts.store([change(over, over)])
            clock.advance(1)
        assert [one.id for one in backend.alerts.past()] == ["two", "one"]
        assert [one.id for one in backend.alerts.past(1)] == ["two"]
        assert backend.alerts.open() == []

    def test_old_alerts_and_silences_are_pruned(self, backend: Backend, clock: VirtualClock) -> None:
        backend.alerts.store([change(None, alert("open", "a"))])
        for name, age in (("old", 3 * HOUR), ("young", HOUR)):
            past = alert(name, name, state=AlertState.RESOLVED, resolved_at=NOON - age)
            assert backend.alerts.store([change(None, past)])
        backend.alerts.silence(Silence(key="a", until=NOON + HOUR, reason="why"))
        assert backend.alerts.prune(2 * HOUR) == 1
        assert [one.id for one in backend.alerts.past()] == ["young"]
        clock.advance(2 * HOUR)
        assert backend.alerts.prune(30 * HOUR) == 1
        assert only(backend).id == "open"

    def test_a_silence_holds_until_its_end(self, backend: Backend, clock: VirtualClock) -> None:
        silence = Silence(key="queue_deep", until=NOON + HOUR, reason="a\0deploy", author="ada")
        backend.alerts.silence(replace(silence, until=NOON))
        backend.alerts.silence(silence)
        (found,) = backend.alerts.silences()
        assert (found.key, found.until, found.author, found.made_at) == ("queue_deep", NOON + HOUR, "ada", NOON)
        assert backend.alerts.unsilence("queue_deep")
        assert not backend.alerts.unsilence("queue_deep")
        backend.alerts.silence(silence)
        clock.advance(2 * HOUR)
        assert backend.alerts.silences() == []

    def test_race_store_store(self, backend: Backend) -> None:
        """Of workers that tell of one problem at once, one tells."""
        drafts = {name: draft() for name in ("one", "two", "three", "four")}

        def fire(name: str) -> bool:
            return backend.alerts.store([change(None, alert(name))], [drafts[name]])

        fired = together(*(lambda name=name: fire(name) for name in drafts))
        assert fired.count(True) == 1
        assert [backend.jobs.get(one.id) is not None for one in drafts.values()].count(True) == 1
        read = only(backend)
        assert backend.jobs.get(drafts[read.id].id) is not None
