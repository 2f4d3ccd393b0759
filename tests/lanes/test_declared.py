"""Tests of ordered queues in the settings, and of the lanes that a producer names."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace

import pytest
from pydantic import BaseModel, Field

from jobqueue import InvalidOption, job
from jobqueue.checks import handlers as checks
from jobqueue.handlers import lanes
from jobqueue.handlers.registry import registry
from jobqueue.policy.lanes import lane_of
from jobqueue.policy.queue_options import mistakes
from jobqueue.records import Assignment
from jobqueue.worker.executor.attempt import Running
from tests.limits.test_declared import kind_of, sync


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        ({"ordered": "yes please"}, "must be True, or the name of the payload's field"),
        ({"ordered": 1}, "must be True, or the name of the payload's field"),
        ({"ordered": "workspace"}, "must be True, or the name of the payload's field"),
        ({"ordered": True, "strict": 1}, "must be True or False, not 1"),
        ({"strict": True}, "has 'strict', but no 'ordered'"),
        ({"orderd": True}, "has the unknown option 'orderd'"),
        ({"ordered": True, "fair": "tenant"}, "has 'ordered' and 'fair', which contradict each other"),
    ],
)
def test_a_wrong_option_is_named(entry, told):
    found = list(mistakes({"imports": entry}))
    assert any(told in one.sentence for one in found), found
    assert all("JOBQUEUE['QUEUES']['imports']" in one.sentence and one.hint for one in found)


def test_right_options_are_accepted():
    right = [{"ordered": True}, {"ordered": "account_id", "strict": True}, {"ordered": "tenant"}, {"ordered": False}]
    assert list(mistakes({f"imports.{place}": one for place, one in enumerate(right)})) == []


def decided(settings, ordered, **fields):
    settings.JOBQUEUE = {"QUEUES": {"imports": {"ordered": ordered}}}
    options = {name: fields.pop(name) for name in ("parallel", "tenant") if name in fields}
    kind = kind_of(sync, queue="imports")
    return kind.decide(replace(kind.options, **options), {"account_id": 7, **fields})


@pytest.mark.parametrize(
    ("ordered", "fields", "lane", "parallel"),
    [
        (True, {}, "*", False),
        (True, {"parallel": True}, "*", True),
        ("account_id", {"parallel": False}, "7", False),
        ("region", {}, "*", False),
        ("region", {"region": "eu"}, "eu", False),
        ("tenant", {"tenant": "acme"}, "acme", False),
    ],
)
def test_a_producer_names_the_lane(settings, ordered, fields, lane, parallel):
    draft = decided(settings, ordered, **fields)
    assert (draft.lane, draft.parallel) == (lane, parallel)


@pytest.mark.parametrize(
    ("ordered", "fields", "told"),
    [
        ("region", {"region": "x" * 256}, "region.* is the key of a lane, and must have at most 255 characters"),
        ("region", {"region": "a\nb"}, "region.* is the key of a lane, and must be one line of visible characters"),
        ("parts", {"parts": [1]}, "parts.* is the key of a lane, and must be text or a number, got a list"),
        (True, {"parallel": "yes"}, "parallel.* must be True or False"),
    ],
)
def test_a_value_that_names_no_lane_is_refused(settings, ordered, fields, told):
    with pytest.raises(InvalidOption, match=told):
        decided(settings, ordered, **fields)


class Account(BaseModel):
    account_id: int = Field(alias="accountId")


def renew(payload: Account) -> None:
    """A handler of a payload whose field has another name in JSON."""


@pytest.mark.parametrize(("ordered", "lane"), [("accountId", "7"), ("account_id", "*")])
def test_a_producer_and_a_claim_name_the_same_lane(settings, ordered, lane):
    settings.JOBQUEUE = {"QUEUES": {"imports": {"ordered": ordered}}}
    kind = kind_of(renew, queue="imports")
    draft = kind.decide(kind.options, {"accountId": 7})
    assert (draft.lane, lane_of(ordered, json.loads(draft.payload), None)) == (lane, lane)
    told = [(one.id, one.hint) for one in checks._lane(kind)]
    assert told == ([] if ordered == "accountId" else [("jobqueue.W028", "Did you mean 'accountId'?")])


@pytest.mark.parametrize("parallel", [None, True])
def test_a_follow_up_job_is_in_the_lane_of_the_tenant_that_it_inherits(settings, monkeypatch, parallel):
    monkeypatch.setattr(registry, "_types", dict(registry._types))
    settings.JOBQUEUE = {"QUEUES": {"imports": {"ordered": "tenant"}}}
    follower = job("bill", queue="imports", parallel=parallel)(sync)
    given = {"id": "1", "type": "bill", "queue": "mail", "payload": "{}", "payload_version": 1, "attempt": 1}
    given |= {"max_retries": 3, "fence": 1, "owner": "me", "tenant": "acme", "workspace": None, "parent_id": None}
    draft = Running(Assignment(**given, context=None), lambda *_: None).follow(follower, (), {"account_id": 7})
    assert (draft.tenant, draft.lane, draft.parallel) == ("acme", "acme", bool(parallel))


def test_parallel_without_an_ordered_queue_is_accepted_and_told_once(settings, monkeypatch):
    monkeypatch.setattr(lanes, "_warned", set())
    with pytest.warns(UserWarning, match="'imports' is not ordered"):
        draft = decided(settings, False, parallel=True)
    assert (draft.lane, draft.parallel) == (None, True)  # for the day on which the queue is ordered
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        decided(settings, False, parallel=True)


def test_checks_name_options_without_effect(settings):
    settings.JOBQUEUE = {"QUEUES": {"imports": {"ordered": "acount_id"}}}
    (useless,) = checks._lane(kind_of(sync, queue="mail", parallel=True))
    assert (useless.id, "'mail' is not ordered" in useless.msg) == ("jobqueue.W027", True)
    (misspelt,) = checks._lane(kind_of(sync, queue="imports", parallel=True))
    assert (misspelt.id, misspelt.hint) == ("jobqueue.W028", "Did you mean 'account_id'?")


@pytest.mark.parametrize(
    ("payload", "lane"),
    [
        ({"a": "x"}, "x"),
        ({"a": 7}, "7"),
        ({"a": True}, "true"),
        ({"a": 10**6_000}, "*"),
        ({"a": "x" * 500}, "*"),
        ({"a": "a\0b"}, "*"),
        ({"a": "\ud800"}, "*"),
        ({"a": ""}, "*"),
        ({"a": None}, "*"),
        ({}, "*"),
        ([], "*"),
        (None, "*"),
    ],
)
def test_any_payload_of_another_program_has_a_lane(payload, lane):
    assert lane_of("a", payload, None) == lane
    assert lane_of(True, payload, None) == "*"
