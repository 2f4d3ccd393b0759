"""Tests of the error classes and their messages."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db.utils import OperationalError

from jobqueue import errors
from jobqueue.errors import (
    Cancel,
    DatabaseBusy,
    Discard,
    DuplicateJobType,
    IdempotencyMismatch,
    InvalidHandler,
    InvalidOption,
    JobNotFound,
    JobQueueError,
    LeaseLost,
    NotMigrated,
    Retry,
    Snooze,
    UnknownJobType,
    Verdict,
)


def _drawn():
    """Read the tree at the top of the file: each class with the one it hangs from."""
    drawn, path = {}, []
    for line in errors.__doc__.splitlines():
        branch = re.match(r"([│ ]*[├└]── )?(\w+)  ", line)
        if branch:
            depth = len(branch[1] or "") // 4
            path[depth:] = [branch[2]]
            drawn[branch[2]] = path[depth - 1] if depth else None
    return drawn


def test_the_tree_on_top_of_the_file_is_the_tree():
    ours = {
        name: one
        for name, one in vars(errors).items()
        if isinstance(one, type) and issubclass(one, BaseException) and one.__module__ == errors.__name__
    }
    roots = {"JobQueueError", "Verdict", "Interrupted"}
    assert _drawn() == {name: None if name in roots else one.__bases__[0].__name__ for name, one in ours.items()}


def test_what_a_handler_says_is_not_caught_as_an_error_of_the_queue():
    assert not issubclass(Verdict, JobQueueError)


@pytest.mark.parametrize("kind", [InvalidHandler, NotMigrated])
def test_a_mistake_in_the_set_up_is_improperly_configured(kind):
    assert issubclass(kind, ImproperlyConfigured)


def test_a_busy_database_is_an_operational_error():
    assert issubclass(DatabaseBusy, OperationalError)


@pytest.mark.parametrize("kind", [UnknownJobType, JobNotFound])
def test_what_is_not_there_is_a_lookup_error_with_a_sentence(kind):
    error = kind("resize", ["resize_image"]) if kind is UnknownJobType else kind("resize")
    assert isinstance(error, LookupError)
    assert str(error).endswith((".", "?"))


def test_an_unknown_type_suggests_the_nearest_names():
    message = str(UnknownJobType("resize_imge", ["resize_image", "resize_images", "send_welcome"]))
    assert "'resize_imge'" in message
    assert "'resize_image' or 'resize_images'" in message
    assert "send_welcome" not in message


def test_an_unknown_type_unlike_any_other_suggests_the_settings():
    assert "INSTALLED_APPS" in str(UnknownJobType("xyzzy", ["resize_image"]))


def test_a_name_given_twice_names_both_places():
    message = str(DuplicateJobType("resize", "shop.jobs.resize, line 3", "blog.jobs.resize, line 9"))
    assert "shop.jobs.resize, line 3" in message
    assert "blog.jobs.resize, line 9" in message


def test_a_mismatched_key_names_the_key_the_job_and_both_types():
    error = IdempotencyMismatch("seven", "01J", "resize", "greet")
    assert (error.key, error.existing_id) == ("seven", "01J")
    assert all(word in str(error) for word in ("'seven'", "01J", "'resize'", "'greet'"))


def test_a_lost_lease_names_the_job_and_the_claim():
    error = LeaseLost("01J", 4)
    assert (error.job_id, error.fence) == ("01J", 4)
    assert "Claim 4 of job 01J" in str(error)


def test_a_database_without_tables_is_told_to_migrate_in_one_sentence():
    assert (
        str(NotMigrated("default"))
        == 'The database "default" has no job queue of this release yet: run "manage.py migrate".'
    )
    assert '"manage.py migrate --database=queue"' in str(NotMigrated("queue"))


def test_a_bad_option_is_known_by_its_name():
    error = InvalidOption("priority", "must be a whole number")
    assert (error.option, str(error)) == ("priority", "priority must be a whole number")
    assert isinstance(error, ValueError)


@pytest.mark.parametrize("verdict", [Retry, Snooze])
def test_a_delay_is_seconds_or_a_timedelta(verdict):
    assert verdict(90).delay == verdict(timedelta(minutes=1.5)).delay == timedelta(seconds=90)


def test_a_retry_without_a_delay_leaves_it_to_the_policy():
    assert Retry().delay is None


def test_a_delay_of_nothing_is_a_delay():
    assert Retry(0).delay == timedelta(0)


@pytest.mark.parametrize("verdict", [Retry, Snooze])
@pytest.mark.parametrize("delay", [-1, timedelta(seconds=-1), float("nan"), float("inf"), 1e300, "soon", True])
def test_a_delay_that_is_no_length_of_time_is_refused_by_name(verdict, delay):
    with pytest.raises(InvalidOption, match=r"^delay "):
        verdict(delay)


@pytest.mark.parametrize("verdict", [Retry, Snooze])
def test_a_delay_that_ends_after_the_last_date_is_refused(verdict):
    with pytest.raises(InvalidOption, match=r"^delay "):
        verdict(timedelta.max)


@pytest.mark.parametrize("verdict", [Retry(), Snooze(1), Discard(), Cancel()])
def test_a_verdict_without_a_reason_still_says_something(verdict):
    assert str(verdict)


def test_a_verdict_keeps_the_reason_given():
    reasons = [Retry(1, "not yet"), Snooze(1, "not yet"), Discard("not yet"), Cancel("not yet")]
    assert [str(verdict) for verdict in reasons] == ["not yet"] * 4
