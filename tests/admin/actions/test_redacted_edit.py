"""Tests of redacted values in an edited payload: restored in their places, and never revealed elsewhere."""

from __future__ import annotations

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobqueue.admin.actions.redacted_edit import Difference, NotRestored, differences, restored
from jobqueue.policy.redaction import redact_data

#: Forms do not depend on the database.
SQLITE_ALONE = True

R = "[redacted]"
URL = "amqp://ada:sesame@mq/"

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=9),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["name", "password", "token", "value", "note", "key", "a"]), inner, max_size=4
        )
    ),
    max_leaves=15,
)


@given(json_values)
def test_what_is_left_as_it_was_shown_is_what_it_was(original):
    whole = restored(redact_data(original), original)
    assert repr(whole) == repr(original)
    assert differences(original, whole) == []


@given(json_values, json_values)
def test_whatever_is_written_no_hidden_value_comes_to_light(original, written):
    try:
        whole = restored(written, copy.deepcopy(original))
    except NotRestored:
        return
    assert redact_data(whole) == redact_data(written)


PAYLOAD = {
    "user": {"name": "Ada", "password": "hunter2"},
    "keys": [{"id": 1, "token": "t-1"}, {"id": 2, "token": "t-2"}],
    "url": URL,
    "secrets": {"deep": ["x"]},
}
SHOWN = {
    "user": {"name": "Ada", "password": R},
    "keys": [{"id": 1, "token": R}, {"id": 2, "token": R}],
    "url": f"amqp://ada:{R}@mq/",
    "secrets": R,
}


def test_this_is_how_it_is_shown():
    assert redact_data(PAYLOAD) == SHOWN


@pytest.mark.parametrize(
    ("written", "whole"),
    [
        ({"user": {"name": "Eve"}}, {"user": {"name": "Eve", "password": "hunter2"}}),
        ({"user": {"password": "other"}}, {"user": {"name": "Ada", "password": "other"}}),
        ({"keys": SHOWN["keys"][::-1]}, {"keys": PAYLOAD["keys"][::-1]}),
        ({"keys": SHOWN["keys"][1:]}, {"keys": PAYLOAD["keys"][1:]}),
        (
            {"keys": [{"id": 9, "token": R}, SHOWN["keys"][1]]},
            {"keys": [{"id": 9, "token": "t-1"}, PAYLOAD["keys"][1]]},
        ),
        (
            {"keys": [*SHOWN["keys"], {"id": 3, "token": "new"}]},
            {"keys": [*PAYLOAD["keys"], {"id": 3, "token": "new"}]},
        ),
        ({"secrets": "plain"}, {"secrets": "plain"}),
        ({"url": "amqp://mq/"}, {"url": "amqp://mq/"}),
        ({"note": True}, {"note": True}),
    ],
)
def test_what_is_changed_around_a_hidden_value_keeps_it(written, whole):
    def merged(base, changes):
        user = {"user": {**base["user"], **changes["user"]}} if "user" in changes else {}
        return {**base, **changes, **user}

    assert restored(merged(SHOWN, written), PAYLOAD) == merged(PAYLOAD, whole)


@pytest.mark.parametrize(
    "written",
    [
        {"note": R},
        {"user": {"name": R, "password": R}},
        {"user": R},
        {"url": f"amqp://ada:{R}@elsewhere/"},
        {"keys": [{"id": 2, "token": R}, {"id": 3, "token": R}, {"id": 1, "token": R, "x": 1}]},
        {"keys": [{"id": 8, "token": R}, {"id": 9, "token": R}]},
        {"secrets": {"deep": R}},
        {"secrets": [R]},
        {"password": {"a": R}},
    ],
)
def test_a_hidden_value_that_nobody_can_place_is_refused(written):
    with pytest.raises(NotRestored, match=r"it is unclear which hidden value is meant\. Write the value out\."):
        restored({**SHOWN, **written}, PAYLOAD)


@pytest.mark.parametrize(
    ("original", "written"),
    [
        ({"name": "API_KEY", "value": "k-1234"}, {"name": "LOG_LEVEL", "value": R}),
        (["--password", "hunter2"], ["--user", R]),
    ],
)
def test_a_hidden_value_under_a_name_that_does_not_hide_it_is_refused(original, written):
    with pytest.raises(NotRestored):
        restored(written, original)


def test_items_that_look_alike_stay_in_their_places_or_are_refused():
    original = [{"token": "a"}, {"token": "b"}, {"n": 1}]
    shown = redact_data(original)
    assert restored([*shown[:2], {"n": 2}], original) == [*original[:2], {"n": 2}]
    with pytest.raises(NotRestored):
        restored(shown[1:], original)


def test_differences_are_told_place_by_place_without_hidden_values():
    new = {
        "user": {"name": "Eve", "password": "hunter3"},
        "keys": [{"id": True, "token": "t-1"}, {"id": 2, "token": "t-2"}],
        "url": "amqp://ada:other@mq/",
        "added": [1, 2],
    }
    assert differences(PAYLOAD, new) == [
        Difference("user.name", '"Ada"', '"Eve"'),
        Difference("user.password", f'"{R}"', "another hidden value"),
        Difference("keys.0.id", "1", "true"),
        Difference("url", f'"amqp://ada:{R}@mq/"', "another hidden value"),
        Difference("secrets", f'"{R}"', None),
        Difference("added", None, "[1, 2]"),
    ]


def test_a_long_value_is_cut():
    (found,) = differences({"a": "x"}, {"a": "y" * 1_000})
    assert found.will.endswith("…")
    assert len(found.will) < 400
