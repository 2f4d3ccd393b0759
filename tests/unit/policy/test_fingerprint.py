"""Tests of the rule that groups failures."""

from __future__ import annotations

import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobqueue.observe.failures import failure_of
from jobqueue.policy.fingerprint import PATTERN_LIMIT, grouping, pattern, raising_line, with_fingerprint
from jobqueue.policy.redaction import redact_text
from jobqueue.records import Ending, Failure

FRAME = 'Traceback (most recent call last):\n  File "/srv/shop/label.py", line 7, in print_label\n'


@pytest.mark.parametrize(
    "several",
    [
        ("order 17 not found", "order 3 not found"),
        ("no user 0b0f7f0e-7c1a-4f51-9a2b-1a2b3c4d5e6f", "no user 7a0f7f0e-0000-4f51-9a2b-1a2b3c4d5e6f"),
        ("no customer cus_9s6XKzkNRiz8i3", "no customer cus_Ab1"),
        ("no user anna.smith@example.com", "no user bob@example.org"),
        ("[Errno 2] No such file or directory: '/tmp/a'", "[Errno 2] No such file or directory: '/tmp/b/c d'"),
        ("can't open 'a'", "can't open 'it's'"),
        ('key "mail" is missing', 'key "name" is missing'),
        ("rows [1, 2] differ", "rows [1, 2, 3, 4.5] differ"),
        ("not one of 'a', 'b'", "not one of 'c'"),
        ("since 2026-11-20T10:00:00.123+00:00", "since 2026-01-02T03:04:05+00:00"),
        ("no answer from 10.0.0.1:8080", "no answer from 10.0.12.3:80"),
        ("it took\n3 s", "it  took 4 s"),
    ],
)
def test_values_are_no_part_of_a_pattern(several):
    assert len(set(map(pattern, several))) == 1


@pytest.mark.parametrize(
    "several",
    [
        ("the disk is full", "the network is down"),
        ("can't reach the users' server", "can't read the users' server"),
        ("amount must be positive", "currency is missing", "card was declined"),
    ],
)
def test_words_are_part_of_a_pattern(several):
    assert len(set(map(pattern, several))) == len(several)


def test_a_pattern_is_legible():
    shown = pattern("Order 17 of 'anna' (3.50 EUR, 2026-11-20) can't be sent to anna@example.com")
    assert shown == "Order # of “…” (# EUR, #) can't be sent to #"


@given(st.text())
def test_a_pattern_is_short_and_stays_what_it_is(text):
    once = pattern(text)
    assert len(once) <= PATTERN_LIMIT
    assert "\n" not in once


#: Another program may have stored a message or a traceback that is much longer than ours.
LONG = 100_000
PIECES = ("'", " '", " 'a'a", " b'a'a", '"', "`", "“", "«", "\u2018", "a@", "a.", "-", "1", "a1 ", "# ", "“…” ", "x")


@pytest.mark.parametrize("piece", PIECES)
def test_no_message_takes_long(piece):
    began = time.process_time()
    pattern(piece * (LONG // len(piece)))
    assert time.process_time() - began < 0.5


@pytest.mark.parametrize("end", ["", '", line 1', '", line 1!'])
@pytest.mark.parametrize("piece", ["/", "\\", "a", '"', "\n"])
def test_no_traceback_takes_long(piece, end):
    began = time.process_time()
    raising_line(f'  File "{piece * LONG}{end}')
    assert time.process_time() - began < 0.5


# The line


def test_the_line_that_raised_counts_without_its_number():
    first = FRAME + "    raise OSError(path)\n    ^^^^^^^^^\nOSError: disk on fire"
    second = FRAME.replace("line 7", "line 99") + "        raise OSError(path)\nOSError: disk on fire"
    assert raising_line(first) == raising_line(second) == "raise OSError(path)"


def test_without_code_the_function_counts():
    assert raising_line(FRAME + "OSError: disk on fire") == "label.py:print_label"
    assert raising_line('  File "C:\\shop\\label.py", line 7, in <module>\nOSError') == "label.py:<module>"


def test_of_a_chain_the_last_error_counts():
    chain = f"{FRAME}    first()\nKeyError: 1\n\nThis led to another error:\n\n{FRAME}    second()\nOSError: disk"
    assert raising_line(chain) == "second()"


def test_a_message_that_looks_like_a_traceback_changes_nothing():
    assert raising_line(f"{FRAME}    run()\nRemoteError: from there:\n{FRAME}    other()\nKeyError") == "run()"


@pytest.mark.parametrize("text", ["", "nothing like it", "…" + FRAME, 'File "', "\0", FRAME * 2])
def test_any_text_has_a_line_or_none(text):
    assert isinstance(raising_line(text), str)


# Groups


def check(amount, currency, card):
    """Fail in one function for three reasons."""
    if amount < 0:
        raise ValueError(f"amount {amount} is negative")
    if not currency:
        raise ValueError("currency is missing")
    raise ValueError(f"card {card!r} was declined")


def failed(*values, job_type="charge"):
    try:
        check(*values)
    except ValueError as error:
        return failure_of(error, Ending.FAILED, job_type=job_type)


def test_three_errors_of_one_function_and_class_are_three_groups():
    negative, missing, declined = failed(-1, "", ""), failed(1, "", ""), failed(1, "EUR", "4711")
    assert all(one.fingerprint != other.fingerprint for one, other in pairwise((negative, missing, declined, negative)))
    assert failed(-99, "EUR", "").fingerprint == negative.fingerprint
    assert failed(1, "EUR", "0815").fingerprint == declined.fingerprint


def test_the_same_line_with_another_message_is_another_group():
    texts = [Failure.of(Ending.FAILED, error_class="E", message=one, traceback=FRAME) for one in ("a", "b")]
    assert len({with_fingerprint("charge", one).fingerprint for one in texts}) == 2


def test_a_stored_failure_has_the_group_that_it_had_when_it_failed():
    failure = failed(1, "EUR", "4711")
    assert grouping("charge", failure).fingerprint == failure.fingerprint
    assert grouping("charge", failure)._asdict() == {
        "job_type": "charge",
        "error": "ValueError",
        "line": 'raise ValueError(f"card {card!r} was declined")',
        "pattern": "card “…” was declined",
    }


def test_secrets_are_no_part_of_a_group():
    shown = grouping("charge", Failure.of(Ending.FAILED, message=redact_text("refused password=hunter2-and-more")))
    assert "hunter" not in shown.pattern


@pytest.mark.parametrize(("ending", "many"), [(Ending.TIMED_OUT, 1), (Ending.FAILED, 2)])
def test_where_an_attempt_was_when_its_time_was_up_is_chance(ending, many):
    texts = [Failure.of(ending, error_class="I", traceback=f"{FRAME}    {code}\nI") for code in ("one()", "two()")]
    assert len({grouping("charge", one).fingerprint for one in texts}) == many


def test_lost_leases_of_all_workers_are_one_group():
    lost = [
        Failure.of(Ending.LEASE_LOST, message=f"the lease of {owner} ran out: it was not renewed in time")
        for owner in ("web:anna", "batch:bob")
    ]
    assert len({grouping("charge", one).fingerprint for one in lost}) == 1
