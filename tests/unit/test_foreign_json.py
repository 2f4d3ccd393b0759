"""Tests of the reader for other programs' JSON, which never fails."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jobqueue import foreign_json
from jobqueue.foreign_json import DEEPEST, LONGEST, MOST_DIGITS, Unreadable, obstacle, read

NESTED = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(NESTED)
def test_what_json_writes_is_read(value):
    assert read(json.dumps(value)) == value
    assert read(json.dumps(value, ensure_ascii=False)) == value


@given(st.text())
@example('"' + "\\" * 50_001)
@example("]" * 500)
@example('{"a":' * 500)
@example("[" * 150 + "{" * 150)
@example("1e999")
@example("-1" + "0" * 400)
@example("-1" + "0" * 400 + ".5")
@example("NaN")
@example('{"a": Infinity}')
@example("")
@example("9" * 10_000)
def test_reading_never_fails_and_what_is_read_can_be_written(text):
    json.dumps(read(text), allow_nan=False)


@given(st.integers(DEEPEST - 2, DEEPEST + 2), st.sampled_from([("[", "]"), ('{"a":', "}"), ('[{"":', "}]")]))
def test_depth_is_judged_exactly(levels, brackets):
    begin, end = brackets
    times = levels // len(end)
    text = begin * times + "1" + end * times
    assert isinstance(read(text), Unreadable) == (times * len(end) > DEEPEST)


def test_brackets_side_by_side_or_in_texts_are_no_depth():
    for value in ([[]] * 5_000, ["[" * 5_000], {"[{" * 500: '\\"[' * 500}, [{"a": [1, {"b": []}]}] * 300):
        assert read(json.dumps(value)) == value


def test_a_number_of_too_many_digits_is_not_read_whatever_python_allows():
    long = "9" * (MOST_DIGITS + 1)
    assert obstacle(f"[{long}]") == f"it has a number of more than {MOST_DIGITS:,} digits"
    assert read(f'["{long}"]') == [long]
    assert read("9" * MOST_DIGITS) == int("9" * MOST_DIGITS)
    assert read(f"[{long}]", str) == [long]


def test_text_that_is_too_long_is_not_read(monkeypatch):
    monkeypatch.setattr(foreign_json, "LONGEST", 10)
    assert read('"12345678"') == "12345678"
    assert read('"123456789"') == "(unreadable: its 11 characters are more than 10)"
    assert LONGEST == 64 * 1024 * 1024


def test_what_is_not_read_says_why_and_keeps_the_text():
    found = read("{")
    assert isinstance(found, Unreadable)
    assert found == f"(unreadable: {found.why})"
    assert (found.why[:15], found.text) == ("it is not JSON:", "{")
    assert read(b"{}").why == "it is not text"


RAISED = """
import sys
sys.setrecursionlimit(100_000)  # as some libraries do
from jobqueue import foreign_json
for text in ("[" * 100_000 + "]" * 100_000, '{"a":' * 100_000 + "1" + "}" * 100_000, "[" * 1_000_000):
    assert foreign_json.read(text).why == "it is nested more than 200 levels deep", text[:10]
print("read")
"""


def test_depth_is_bounded_where_a_library_has_raised_the_recursion_limit():
    """Else the decoder overruns its stack on Python 3.11, which ends the process."""
    done = subprocess.run([sys.executable, "-c", RAISED], capture_output=True, text=True)
    assert (done.stdout, done.returncode) == ("read\n", 0), done.stderr


@pytest.mark.parametrize(
    "text", ["9" * 5_000_000, "[" * 5_000_000, "]" * 5_000_000, '{"a":[' * 800_000, '"' * 4_000_001]
)
@pytest.mark.timeout(60)
def test_five_megabytes_of_anything_are_judged_in_time(text):
    assert isinstance(read(text), Unreadable)
