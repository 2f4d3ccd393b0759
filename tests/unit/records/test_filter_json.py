"""Tests of filters as JSON: unchanged after the round trip, and strict about anything else."""

from __future__ import annotations

import json
from dataclasses import fields
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobqueue.errors import InvalidOption
from jobqueue.records import Filter, filter_from_json, filter_to_json
from jobqueue.records.filter_json import _READ
from jobqueue.states import JobStatus

zones = st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
moments = st.datetimes(timezones=zones | st.just(UTC)) | st.datetimes()
texts = st.text(max_size=20)
names = st.frozensets(texts, max_size=3)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
filters = st.builds(
    Filter,
    ids=names,
    statuses=st.frozensets(st.sampled_from(JobStatus), max_size=5),
    types=names,
    queues=names,
    tenant=st.none() | texts,
    error=texts,
    created_after=st.none() | moments,
    created_before=st.none() | moments,
    id_prefix=texts,
    idempotency_key=st.none() | texts,
    parent_id=st.none() | texts,
    lease_owner=st.none() | texts,
    fingerprint=st.none() | texts,
    payload=st.lists(st.tuples(texts, values), max_size=3).map(tuple),
)


@given(filters)
def test_what_is_written_is_read_back_exactly(wanted):
    back = filter_from_json(json.loads(json.dumps(filter_to_json(wanted))))
    assert back == wanted
    # 1 equals True, and 1.0 equals 1: what is written tells them apart.
    assert json.dumps(filter_to_json(back)) == json.dumps(filter_to_json(wanted))
    assert {type(status) for status in back.statuses} <= {JobStatus}


def test_every_field_of_a_filter_is_known():
    assert set(_READ) == {one.name for one in fields(Filter)}


def test_an_empty_filter_is_an_empty_object():
    assert filter_to_json(Filter()) == {}
    assert filter_from_json({}) == Filter()


def test_an_empty_fingerprint_is_not_the_lack_of_one():
    assert filter_to_json(Filter(fingerprint="")) == {"fingerprint": ""}
    assert filter_from_json({"fingerprint": ""}).fingerprint == ""


def test_the_same_filter_is_written_the_same():
    one = Filter(types=frozenset("abc"), created_after=datetime(2026, 1, 2, tzinfo=UTC))
    assert filter_to_json(one) == {"types": ["a", "b", "c"], "created_after": "2026-01-02T00:00:00+00:00"}


@pytest.mark.parametrize(
    "data",
    [
        None,
        [],
        "{}",
        {"status": ["queued"]},
        {"statuses": "queued"},
        {"statuses": ["lost"]},
        {"statuses": []},
        {"types": []},
        {"types": [7]},
        {"ids": None},
        {"tenant": 7},
        {"tenant": None},
        {"created_after": "yesterday"},
        {"created_after": 0},
        {"payload": []},
        {"payload": {"a": 1}},
        {"payload": [["a"]]},
        {"payload": [["a", 1, 2]]},
        {"payload": [[1, 2]]},
        {"payload": ["ab"]},
        {7: "x"},
    ],
)
def test_what_is_no_filter_is_refused_and_never_a_wider_one(data):
    with pytest.raises(InvalidOption, match="filter"):
        filter_from_json(data)
