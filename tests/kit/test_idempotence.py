"""Tests of the proof that a handler may run twice and be killed in between."""

from __future__ import annotations

import pytest

from jobqueue.testing import assert_idempotent, perform
from tests.kit import handlers
from tests.kit.handlers import groups, names

pytestmark = pytest.mark.usefixtures("rolled_back")


@pytest.mark.parametrize(
    "handler", [handlers.ensure, handlers.durable, handlers.add_atomically], ids=lambda one: one.name
)
def test_a_handler_that_is_safe_passes_and_leaves_nothing(handler):
    assert_idempotent(handler, {"name": "Ada"}, observe=names)
    assert names() == []


def test_a_handler_that_repeats_its_effect_is_shown_with_it():
    with pytest.raises(AssertionError) as caught:
        assert_idempotent(handlers.append, observe=names)
    told = str(caught.value)
    assert "The handler 'kit.append' is not safe to run twice. What is observed after it ran twice differs" in told
    assert told.splitlines()[1:] == ["- ['row 0']", "+ ['row 0', 'row 1']"]


def test_a_handler_that_raises_in_its_second_attempt_is_shown_with_its_error():
    with pytest.raises(AssertionError, match=r"'kit.add' failed after it ran twice: IntegrityError"):
        assert_idempotent(handlers.add, {"name": "Ada"}, observe=names)


def test_a_kill_between_two_statements_is_found():
    perform(handlers.count_up)
    perform(handlers.count_up)
    groups().all().delete()
    with pytest.raises(AssertionError) as caught:
        assert_idempotent(handlers.count_up, observe=names)
    told = str(caught.value)
    assert "What is observed after an attempt was killed at place 3, 'INSERT INTO" in told
    assert told.splitlines()[1:] == ["- ['begun', 'ended']", "+ ['begun']"]


def test_a_handler_that_fails_at_once_is_no_proof():
    with pytest.raises(AssertionError, match=r"'kit.fail' failed in its first attempt: OSError: disk on fire"):
        assert_idempotent(handlers.fail, observe=names)
