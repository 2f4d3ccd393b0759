"""Tests of error groups: dead letters by error, with counts, first and last failure, and counts by hour."""

from __future__ import annotations

from datetime import timedelta

from jobqueue.backends.base import Backend
from jobqueue.policy.settling import settled
from jobqueue.records import HOURS, Caps, Dead, Ending, ErrorGroup, ErrorGroups, Failure
from jobqueue.testing.clock import NOON, VirtualClock
from jobqueue.testing.contract.harness import Contract, put, settle, take_one

CAPS = Caps(group=10_000, groups=100_000, hour=500, hours=100_000)


def fail(backend: Backend, fingerprint: str | None = None, message: str = "disk on fire", kind: str = "resize") -> str:
    """Make a dead letter with a fingerprint, and return its id."""
    put(backend, kind)
    claim = take_one(backend)
    failure = Failure.of(Ending.FAILED, error_class="OSError", message=message, fingerprint=fingerprint)
    assert settle(backend, settled(claim, Dead("attempts used up"), failure)) == ()
    return claim.id


def named(found: ErrorGroups) -> list[str]:
    """Return the fingerprints in order."""
    return [group.fingerprint for group in found.groups]


def only(found: ErrorGroups) -> ErrorGroup:
    """Return the only group."""
    (group,) = found.groups
    return group


class GroupContract(Contract):
    """Tests of error groups."""

    def test_without_dead_letters_there_is_no_group(self, backend: Backend) -> None:
        put(backend)
        assert backend.errors.groups(10, CAPS) == ErrorGroups()
        assert backend.errors.group("disk", CAPS) is None
        assert backend.errors.group("", CAPS) is None

    def test_a_group_tells_of_its_newest_job_and_counts_all(self, backend: Backend, clock: VirtualClock) -> None:
        fail(backend, "disk", "disk on fire")
        clock.advance(60)
        newest = fail(backend, "disk", "disk under water", "greet")
        group = only(backend.errors.groups(10, CAPS))
        assert (group.fingerprint, group.count, group.capped) == ("disk", 2, False)
        assert (group.newest_id, group.type, group.error) == (newest, "greet", "disk under water")
        assert (group.error_class, group.ending) == ("OSError", Ending.FAILED)
        assert (group.first_at, group.last_at) == (NOON, NOON + timedelta(seconds=60))
        assert backend.errors.group("disk", CAPS) == group

    def test_groups_come_with_the_latest_first(self, backend: Backend, clock: VirtualClock) -> None:
        for name in ("b", "a", "c", "a"):
            fail(backend, name)
            clock.advance(1)
        assert named(backend.errors.groups(10, CAPS)) == ["a", "c", "b"]

    def test_of_too_many_groups_the_latest_are_shown_and_more_is_said(
        self, backend: Backend, clock: VirtualClock
    ) -> None:
        for name in ("d", "b", "a", "c"):
            fail(backend, name)
            clock.advance(1)
        assert backend.errors.groups(4, CAPS).more is False
        few = backend.errors.groups(2, CAPS)
        assert (named(few), few.more) == (["c", "a"], True)

    def test_those_without_a_fingerprint_are_one_group(self, backend: Backend, clock: VirtualClock) -> None:
        fail(backend, None, kind="greet")
        clock.advance(1)
        fail(backend, "disk")
        clock.advance(1)
        newest = fail(backend, None)
        assert named(backend.errors.groups(10, CAPS)) == ["", "disk"]
        group = backend.errors.group("", CAPS)
        assert group is not None
        assert (group.fingerprint, group.count, group.newest_id, group.first_at) == ("", 2, newest, NOON)
        assert sum(group.hourly) == 2

    def test_what_is_retried_or_purged_leaves_its_group(self, backend: Backend) -> None:
        retried, purged, left = (fail(backend, "disk") for _ in range(3))
        backend.operator.retry([retried])
        backend.operator.purge([purged])
        group = only(backend.errors.groups(10, CAPS))
        assert (group.count, group.newest_id) == (1, left)

    def test_a_count_stops_at_the_groups_share(self, backend: Backend) -> None:
        for _ in range(4):
            fail(backend, "disk")
        fail(backend, "net")
        for cap in (CAPS._replace(group=3), CAPS._replace(groups=6)):
            found = {group.fingerprint: (group.count, group.capped) for group in backend.errors.groups(10, cap).groups}
            assert found == {"disk": (3, True), "net": (1, False)}
        alone = backend.errors.group("disk", CAPS._replace(groups=6))
        assert alone is not None
        assert (alone.count, alone.capped) == (4, False)

    def test_the_last_day_is_told_by_the_hour(self, backend: Backend, clock: VirtualClock) -> None:
        fail(backend, "disk")
        clock.advance(timedelta(hours=2))
        for _ in range(3):
            fail(backend, "disk")
        clock.advance(timedelta(hours=22, minutes=30))
        fail(backend, "disk")
        group = only(backend.errors.groups(10, CAPS))
        assert len(group.hourly) == HOURS
        assert {hour: count for hour, count in enumerate(group.hourly) if count} == {1: 3, 23: 1}
        for cap in (CAPS._replace(hour=2), CAPS._replace(hours=2 * HOURS)):
            capped = only(backend.errors.groups(10, cap))
            assert (capped.hourly[1], capped.hourly_cap) == (2, 2)

    def test_an_old_group_has_a_quiet_day(self, backend: Backend, clock: VirtualClock) -> None:
        fail(backend, "disk")
        clock.advance(timedelta(days=30))
        group = only(backend.errors.groups(10, CAPS))
        assert (sum(group.hourly), group.last_at) == (0, NOON)

    def test_an_error_is_told_by_its_beginning(self, backend: Backend) -> None:
        fail(backend, "disk", "x" * 1_000)
        assert only(backend.errors.groups(10, CAPS)).error == "x" * 300

    def test_the_class_is_the_last_attempts(self, backend: Backend) -> None:
        job_id = fail(backend, "disk")
        backend.operator.retry([job_id])
        failure = Failure.of(Ending.CRASHED, message="its process was ended", fingerprint="resize:crashed")
        assert settle(backend, settled(take_one(backend), Dead("attempts used up"), failure)) == ()
        group = only(backend.errors.groups(10, CAPS))
        assert (group.fingerprint, group.error_class, group.ending) == ("resize:crashed", "", Ending.CRASHED)
