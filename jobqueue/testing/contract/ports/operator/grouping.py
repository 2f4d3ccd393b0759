"""Tests of error groups: dead letters by error, with counts, first and last failure, and counts by hour."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import timedelta

import pytest
from django.test import override_settings

from jobqueue import conf
from jobqueue.backends.base import Backend
from jobqueue.policy.fingerprint import with_fingerprint
from jobqueue.policy.settling import settled
from jobqueue.records import (
    HOURS,
    Caps,
    Dead,
    Ending,
    ErrorGroup,
    ErrorGroups,
    ErrorShares,
    Failure,
    GroupFilter,
    GroupOrder,
)
from jobqueue.testing.clock import NOON, VirtualClock
from jobqueue.testing.contract.harness import Contract, put, settle, take_one

CAPS = Caps(group=10_000, groups=100_000, hour=500, hours=100_000)


def fail(backend: Backend, fingerprint: str | None = None, message: str = "disk on fire", kind: str = "resize") -> str:
    """Make a dead letter with a fingerprint, and return its id."""
    put(backend, kind)
    claim = take_one(backend)
    assert settle(backend, settled(claim, Dead("attempts used up"), failure_with(fingerprint, message))) == ()
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

    def test_counts_are_exact_as_long_as_all_are_few(self, backend: Backend) -> None:
        for _ in range(4):
            fail(backend, "disk")
        fail(backend, "net")
        found = backend.errors.groups(10, CAPS._replace(groups=5))
        assert {group.fingerprint: (group.count, group.capped) for group in found.groups} == {
            "disk": (4, False),
            "net": (1, False),
        }

    def test_a_count_stops_at_the_groups_share(self, backend: Backend) -> None:
        for _ in range(4):
            fail(backend, "disk")
        fail(backend, "net")
        for most, cap in ((3, CAPS._replace(group=3)), (2, CAPS._replace(groups=4))):
            found = {group.fingerprint: (group.count, group.capped) for group in backend.errors.groups(10, cap).groups}
            assert found == {"disk": (most, True), "net": (1, False)}
        alone = backend.errors.group("disk", CAPS._replace(groups=4))
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

    # What is asked for

    def test_groups_are_filtered_by_type_and_text_of_their_newest_job(self, backend: Backend) -> None:
        fail(backend, "disk", "Disk on fire")
        fail(backend, "net", "no route", kind="greet")
        for wanted, names in (
            (GroupFilter(type="greet"), ["net"]),
            (GroupFilter(text="DISK ON"), ["disk"]),
            (GroupFilter(text="oserror"), ["net", "disk"]),
            (GroupFilter(type="greet", text="disk"), []),
            (GroupFilter(type="nobody"), []),
        ):
            for caps in (CAPS, CAPS._replace(groups=1)):
                found = backend.errors.groups(10, caps, wanted)
                assert (sorted(named(found)), found.more) == (sorted(names), False)

    def test_what_is_redacted_is_not_found(self, backend: Backend) -> None:
        fail(backend, "disk", "refused: password=hunter2-and-more")
        assert named(backend.errors.groups(10, CAPS, GroupFilter(text="hunter2"))) == []
        assert named(backend.errors.groups(10, CAPS, GroupFilter(text="refused"))) == ["disk"]

    def test_groups_are_ordered_by_number_and_by_first_failure(self, backend: Backend, clock: VirtualClock) -> None:
        for name in ("old", "old", "many", "many", "many", "new", "old"):
            fail(backend, name)
            clock.advance(1)
        for caps in (CAPS, CAPS._replace(groups=6)):
            latest, newest, largest = (
                named(backend.errors.groups(10, caps, GroupFilter(order=order)))
                for order in (GroupOrder.LATEST, GroupOrder.NEWEST, GroupOrder.LARGEST)
            )
            assert latest == ["old", "new", "many"]
            assert newest == ["new", "many", "old"]
            assert largest[-1] == "new"
        assert largest == named(backend.errors.groups(10, caps, GroupFilter(order=GroupOrder.LARGEST)))

    # What is remembered

    def test_first_seen_survives_a_retry_and_a_purge(self, backend: Backend, clock: VirtualClock) -> None:
        retried, purged = fail(backend, "disk"), fail(backend, "disk")
        clock.advance(60)
        backend.operator.retry([retried])
        backend.operator.purge([purged])
        put_back = take_one(backend)
        assert settle(backend, settled(put_back, Dead("attempts used up"), failure_with("disk"))) == ()
        group = only(backend.errors.groups(10, CAPS))
        assert (group.count, group.first_at, group.last_at) == (1, NOON, NOON + timedelta(seconds=60))

    def test_an_error_comes_back_after_a_retry(self, backend: Backend, clock: VirtualClock) -> None:
        first, second = fail(backend, "disk"), fail(backend, "disk")
        assert only(backend.errors.groups(10, CAPS)).retried_at is None
        clock.advance(60)
        backend.operator.retry([first])
        group = only(backend.errors.groups(10, CAPS))
        assert (group.newest_id, group.retried_at, group.came_back) == (second, clock.now(), False)
        clock.advance(60)
        assert settle(backend, settled(take_one(backend), Dead("attempts used up"), failure_with("disk"))) == ()
        group = only(backend.errors.groups(10, CAPS))
        assert (group.newest_id, group.retried_at, group.came_back) == (first, NOON + timedelta(seconds=60), True)
        assert backend.errors.group("disk", CAPS) == group

    def test_a_retry_that_is_undone_is_not_remembered(self, backend: Backend) -> None:
        job_id = fail(backend, "disk")
        with pytest.raises(ZeroDivisionError), backend.atomic():
            backend.operator.retry([job_id])
            raise ZeroDivisionError
        assert only(backend.errors.groups(10, CAPS)).retried_at is None

    def test_each_release_that_had_an_error_is_remembered(self, backend: Backend, clock: VirtualClock) -> None:
        fail(backend, "disk")
        for release in ("1.0", "1.1", "1.1"):
            clock.advance(60)
            with of_release(release):
                fail(backend, "disk")
        group = only(backend.errors.groups(10, CAPS))
        assert group.first_at == NOON
        assert group.releases == (("1.0", NOON + timedelta(seconds=60)), ("1.1", NOON + timedelta(seconds=120)))

    # What they have in common

    def test_shares_tell_who_is_affected(self, backend: Backend, clock: VirtualClock) -> None:
        for tenant, queue, release in (("a", "mail", "1.0"), ("a", "mail", "1.1"), (None, "default", "1.1")):
            put(backend, "resize", tenant=tenant, queue=queue)
            with of_release(release):
                assert settle(backend, settled(take_one(backend), Dead("attempts used up"), failure_with("disk"))) == ()
            clock.advance(1)
        shares = backend.errors.shares("disk", 10)
        assert (shares.of, shares.is_all) == (3, True)
        assert shares.tenants == (("a", 2), ("", 1))
        assert shares.queues == (("mail", 2), ("default", 1))
        assert shares.releases == (("1.1", 2), ("1.0", 1))
        assert [share.number for share in shares.hosts] == [3]
        newest = backend.errors.shares("disk", 2)
        assert (newest.of, newest.is_all, newest.releases) == (2, False, (("1.1", 2),))
        assert backend.errors.shares("nothing", 2) == ErrorShares()

    # Another rule

    def test_dead_letters_are_grouped_again_from_their_history(self, backend: Backend, clock: VirtualClock) -> None:
        ids = [fail(backend, "old", f"no disk {number}") for number in range(2)]
        waiting = put(backend)
        clock.advance(60)
        groupings = backend.errors.groupings([*ids, waiting, "nobody"])
        assert groupings.keys() == set(ids)
        assert len(set(groupings.values())) == 1
        now = with_fingerprint("resize", failure_with(None, "no disk 7")).fingerprint
        assert {one.fingerprint for one in groupings.values()} == {now}
        names = {job_id: one.fingerprint for job_id, one in groupings.items()}
        assert backend.errors.outdated([*ids, waiting, "nobody"]) == names
        before = backend.jobs.get(ids[0])
        assert sorted(backend.operator.regroup({**names, waiting: "x", "nobody": "y"})) == sorted(ids)
        assert backend.jobs.get(waiting).error_fingerprint is None  # type: ignore[union-attr]
        assert backend.jobs.get(ids[0]) == replace(before, error_fingerprint=now)  # type: ignore[type-var]
        assert backend.errors.outdated(ids) == {}
        group = only(backend.errors.groups(10, CAPS))
        assert (group.fingerprint, group.count, group.first_at) == (now, 2, NOON)
        backend.operator.purge(ids)
        fail(backend, now)
        assert only(backend.errors.groups(10, CAPS)).first_at == NOON


def failure_with(fingerprint: str | None, message: str = "disk on fire") -> Failure:
    """Return a failure with a fingerprint."""
    return Failure.of(Ending.FAILED, error_class="OSError", message=message, fingerprint=fingerprint)


def of_release(release: str) -> AbstractContextManager[object]:
    """Let this process run a release."""
    return override_settings(JOBQUEUE={**conf.given(), "RELEASE": release})
