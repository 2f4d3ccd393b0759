"""Tests of the values that pass between rooms: frozen, and fit for any database."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobqueue.records import Admission, AttemptCount, ClaimRequest, Draft, DraftReceipt, Ending, Failure, Settlement
from jobqueue.records.outcome import MESSAGE_LIMIT, TRACEBACK_LIMIT, storable
from jobqueue.states import Move


def test_a_draft_without_a_key_has_none():
    assert Draft(id="1", type="resize", payload="{}").key is None


@pytest.mark.parametrize("column", ["idempotency_key", "unique_key"])
def test_a_drafts_key_says_which_column_holds_it(column):
    assert Draft(id="1", type="resize", payload="{}", **{column: "seven"}).key == (column, "seven")


def test_a_draft_has_the_canonical_defaults():
    draft = Draft(id="1", type="resize", payload="{}")
    assert (draft.queue, draft.priority, draft.max_retries, draft.delay) == ("default", 5, 3, timedelta(0))


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (Draft(id="1", type="resize", payload="{}"), "payload"),
        (DraftReceipt("1", Admission.CREATED), "id"),
        (Failure.of(Ending.FAILED), "message"),
        (Settlement("1", 1, "me", Move.COMPLETE), "fence"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_value_cannot_be_changed(value, name):
    with pytest.raises((FrozenInstanceError, AttributeError)):
        setattr(value, name, "other")


def test_a_receipt_says_whether_this_call_made_the_job():
    assert DraftReceipt("1", Admission.CREATED).created
    assert not DraftReceipt("1", Admission.EXISTING).created


def test_a_request_takes_a_types_own_lease_before_the_common_one():
    request = ClaimRequest(limit=1, types=frozenset({"resize"}), leases={"resize": timedelta(minutes=5)})
    assert request.lease_of("resize") == timedelta(minutes=5)
    assert request.lease_of("greet") == timedelta(seconds=60)


@pytest.mark.parametrize(("number", "most", "left"), [(1, 3, True), (2, 3, True), (3, 3, False), (4, 3, False)])
def test_attempts_are_left_until_their_number_is_reached(number, most, left):
    assert AttemptCount(number, most).left is left


def test_a_settlement_is_known_by_job_and_fence():
    assert Settlement("1", 4, "me", Move.COMPLETE).claim == ("1", 4)


@given(text=st.text(alphabet=st.characters(), max_size=80), limit=st.integers(2, 60), keep_end=st.booleans())
def test_any_text_becomes_one_that_every_database_takes(text, limit, keep_end):
    kept = storable(text, limit, keep_end=keep_end)
    assert len(kept) <= limit
    assert "\0" not in kept
    kept.encode("utf-8")


@given(text=st.text(alphabet=st.characters(codec="utf-8", exclude_characters="\0"), max_size=60))
def test_a_text_that_fits_is_kept_as_it_is(text):
    assert storable(text, 60) == text


def test_a_long_text_loses_its_end_and_a_traceback_its_beginning():
    assert storable("abcdef", 4) == "abc…"
    assert storable("abcdef", 4, keep_end=True) == "…def"


def test_a_failure_is_cut_to_what_its_columns_hold():
    failure = Failure.of(Ending.FAILED, error_class="E" * 500, message="m" * 100_000, traceback="t" * 100_000)
    assert (len(failure.error_class), len(failure.message)) == (255, MESSAGE_LIMIT)
    assert len(failure.traceback) == TRACEBACK_LIMIT
