"""Tests of keys made of payload fields: equal for equal work, in every process, and without readable values."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from datetime import date
from pathlib import Path
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobqueue.handlers.keys import payload_key
from jobqueue.handlers.options import KEY_LENGTH, NAME_LENGTH, Options

ROOT = Path(__file__).resolve().parents[3]
VALUES = st.dictionaries(st.text(), st.none() | st.booleans() | st.integers() | st.text() | st.lists(st.integers()))


@given(values=VALUES)
def test_the_order_of_the_values_does_not_matter(values):
    assert payload_key("resize", values) == payload_key("resize", dict(reversed(values.items())))


@given(values=VALUES)
def test_every_key_has_the_same_form_and_is_taken_as_one(values):
    key = payload_key("resize", values)
    assert re.fullmatch(r"resize-[0-9a-f]{32}", key)
    assert Options(idempotency_key=key).idempotency_key == key


def test_the_longest_type_name_leaves_room_for_the_digits():
    assert len(payload_key("t" * NAME_LENGTH, {"image_id": 7})) <= KEY_LENGTH


@pytest.mark.parametrize(
    "other",
    [{"image_id": 8}, {"image_id": "7"}, {"image_id": None}, {"image": 7}, {"image_id": 7, "width": 1}, {}],
)
def test_other_work_has_another_key(other):
    assert payload_key("resize", {"image_id": 7}) != payload_key("resize", other)


def test_another_type_has_another_key():
    assert payload_key("resize", {"image_id": 7}) != payload_key("crop", {"image_id": 7})


def test_a_nonce_makes_a_key_that_cannot_be_guessed_from_the_values():
    keys = {payload_key("reset", {"email": "a@b.de"}, nonce) for nonce in ("", "one", "two")}
    assert len(keys) == 3


def test_a_key_tells_nothing_of_the_values():
    assert "secret" not in payload_key("reset", {"secret": "secret"}, "secret")


def test_values_that_json_has_no_word_for_are_spelled():
    values = {"day": date(2026, 1, 16), "id": UUID(int=7)}
    assert payload_key("report", values) == payload_key("report", {"day": "2026-01-16", "id": str(UUID(int=7))})


def test_the_key_is_the_same_in_every_process():
    script = (
        "from jobqueue.handlers.keys import payload_key; print(payload_key('tag', {'tags': {'a', 'b', 'c', 'd', 'e'}}))"
    )
    keys = {
        subprocess.run(
            [sys.executable, "-c", script],
            cwd=ROOT,
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(keys) == 1
