"""Tests of `limits`, and of what `why` says about jobs under limits."""

from __future__ import annotations

from datetime import timedelta

import pytest

from jobqueue import control
from jobqueue.errors import InvalidOption
from jobqueue.testing.contract.harness import draft, put, put_all, request
from jobqueue.testing.contract.limiting import at_once, rate


def test_limits_are_set_listed_and_unset(run, queue):
    said = run("limits", "set", "--type", "send_welcome", "--concurrency", "2", "--reason", "slow", "--json")
    assert (said.code, said.json["changed"], said.json["stored"]["reason"]) == (0, True, "slow")
    assert "The type send_welcome now has the limit 2 at once." in said.err
    assert run("limits", "set", "--queue", "mail", "--rate", "100", "--per", "60").code == 0
    mail, welcome = run("limits", "--json").json["limits"]
    assert (mail["limit"]["name"], mail["limit"]["number"], mail["limit"]["per"]) == ("mail", 100, 60.0)
    assert (welcome["limit"]["number"], welcome["in_code"]) == (2, None)
    assert (
        run("limits", "list", "--type", "send_welcome")
        .out.splitlines()[1]
        .startswith("type\tsend_welcome\t-\t2 at once")
    )
    assert run("limits", "unset", "--type", "send_welcome", "--concurrency", "--json").json["changed"]
    assert "nothing was changed" in run("limits", "unset", "--type", "send_welcome", "--concurrency").err
    assert run("limits", "unset", "--queue", "mail", "--rate", "--per", "60").code == 0
    assert run("limits").err == "There are no limits.\n"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--concurrency", "2"], "--type or --queue is needed to name the limit"),
        (["--type", "send_welcome"], "--concurrency or --rate is needed to name the limit"),
        (["--type", "send_welcome", "--concurrency", "0"], "Concurrency must be a whole number from 1"),
        (["--type", "send_welcome", "--rate", "5"], "--per is needed with --rate"),
        (["--type", "send_welcome", "--concurrency", "5", "--key", "account"], "key must be declared in code"),
    ],
)
def test_a_limit_that_cannot_be_stored_is_refused(run, queue, words, told):
    said = run("limits", "set", *words)
    assert (said.code, told in said.err) == (3, True), said.err
    assert queue.limits.stored() == []


def test_why_names_the_limits_that_are_used_up(run, queue):
    queue.limits.set(at_once(1, name="send_welcome"))
    queue.limits.set(rate(1, per=600.0, name="send_welcome"))
    running, waiting = put_all(queue, draft("send_welcome"), draft("send_welcome"))
    queue.cycle("me", (), request(types=frozenset({"send_welcome"})))
    said = run("why", waiting, "--json").json["reasons"]
    assert [one["code"] for one in said][:2] == ["limit_used_up", "rate_used_up"]
    assert said[0]["text"] == f"1 of 1 jobs of the type send_welcome run now: {running}."
    assert said[1]["text"].startswith(
        "The rate of 1 in 600 s of the type send_welcome is used up; the next start is in "
    )
    later = put(queue, "send_welcome", delay=timedelta(hours=1))
    assert "limit_used_up" not in [one["code"] for one in run("why", later, "--json").json["reasons"]]


def test_a_key_that_the_code_does_not_declare_stores_nothing(queue):
    with pytest.raises(InvalidOption, match="there is none there"):
        control.set_limit(at_once(1, key="tenant", name="send_welcome"))
