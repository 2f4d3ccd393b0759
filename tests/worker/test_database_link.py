"""The link to the database: what a call gets without an answer; ``None`` is an answer like any other."""

from __future__ import annotations

import pytest
from django.db import OperationalError

from jobqueue.errors import DatabaseBusy
from jobqueue.worker.database_link import NO_ANSWER, DatabaseLink


@pytest.fixture
def link(databases):
    return DatabaseLink("default", lambda: 0, 60.0, lambda error: isinstance(error, ValueError))


@pytest.mark.parametrize("answer", [None, 0, "", "text"])
def test_an_answer_is_returned_as_it_is(link, answer):
    assert link.ask(lambda: answer) == answer
    assert link.ask(lambda: answer, NO_ANSWER) == answer


@pytest.mark.parametrize(
    ("error", "is_lost"),
    [(DatabaseBusy("locked"), False), (OperationalError("gone"), True), (ValueError("a row"), False)],
)
def test_where_there_is_none_the_caller_says_what_it_gets(link, error, is_lost):
    def fails():
        raise error

    assert link.ask(fails) is None
    assert link.ask(fails, NO_ANSWER) is NO_ANSWER
    assert link.is_lost is is_lost
