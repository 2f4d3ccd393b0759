"""Tests of fair queues in settings, and of the values that a producer stores."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from jobqueue import Concurrency, InvalidOption
from jobqueue.policy.queue_options import mistakes, options_of
from tests.limits.test_declared import kind_of, sync

SQLITE_ALONE = True
FAIR = {"QUEUES": {"imports": {"fair": "region", "weights": {"eu": 3}}, "mail.*": {"fair": "tenant"}}}


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"fair": "the tenant"}, "['imports']['fair'] must be the name of the payload's field"),
        ({"fair": True}, "['imports']['fair'] must be the name of the payload's field"),
        ({"fair": "tenant", "ordered": True}, "has 'ordered' and 'fair', which contradict each other"),
        ({"fair": "tenant", "weights": 3}, "must be a dict of values and numbers from 0.001 to 1,000, not 3"),
        ({"fair": "tenant", "weights": {"acme": 0}}, "must be a dict of values and numbers"),
        ({"fair": "tenant", "weights": {"acme": True}}, "must be a dict of values and numbers"),
        ({"fair": "tenant", "weights": {"acme": float("nan")}}, "must be a dict of values and numbers"),
        ({"weights": {"acme": 2}}, "has 'weights', but no 'fair': its jobs take no turns"),
        ({"fare": "tenant"}, "has the unknown option 'fare'"),
    ],
)
def test_wrong_options_are_named(entry, words):
    (mistake,) = mistakes({"imports": entry})
    assert "JOBQUEUE['QUEUES']['imports']" in mistake.sentence
    assert words in mistake.sentence


def test_hints():
    assert [one.hint for one in mistakes({"imports": {"fare": "tenant"}})] == ["Did you mean 'fair'?"]
    (mistake,) = mistakes({"imports": {"fair": "tenant", "weights": {"acme": -1, "b": 2}}})
    assert mistake.hint == "The weight of 'acme' is -1. The default is 1."


def test_options():
    options = options_of("imports", FAIR["QUEUES"])
    assert (options.fair, dict(options.weights), options.has_own_order) == ("region", {"eu": 3.0}, True)
    assert not options_of("default", FAIR["QUEUES"]).has_own_order
    assert list(mistakes(FAIR["QUEUES"])) == []


@pytest.mark.parametrize(
    ("queue", "fields", "stored"),
    [
        ("imports", {"region": "eu"}, "eu"),
        ("imports", {}, ""),
        ("imports", {"region": "x" * 255}, "x" * 255),
        ("mail.de", {"region": "eu"}, "acme"),
        ("default", {"region": "eu"}, None),
    ],
)
def test_the_value_travels_with_the_job(settings, queue, fields, stored):
    settings.JOBQUEUE = FAIR
    kind = kind_of(sync)
    draft = kind.decide(replace(kind.options, queue=queue, tenant="acme"), {"account_id": 7, **fields})
    assert draft.fair_key == stored


def test_a_limit_and_a_fair_queue_store_both(settings):
    settings.JOBQUEUE = FAIR
    kind = kind_of(sync, Concurrency(1, key="account_id"))
    draft = kind.decide(replace(kind.options, queue="imports"), {"account_id": 7, "region": "eu"})
    assert (draft.fair_key, json.loads(draft.concurrency_key)) == ("eu", {"account_id": "7"})


@pytest.mark.parametrize(
    ("fair", "fields", "words"),
    [
        ("region", {"region": "x" * 256}, "region is the key of a fair queue, and must have at most 255 characters"),
        ("region", {"region": "a\nb"}, "region is the key of a fair queue, and must be one line"),
        ("parts", {"parts": [1]}, "parts is the key of a fair queue, and must be text or a number, got a list"),
    ],
)
def test_a_value_that_cannot_be_stored_is_refused(settings, fair, fields, words):
    settings.JOBQUEUE = {"QUEUES": {"imports": {"fair": fair}}}
    kind = kind_of(sync)
    with pytest.raises(InvalidOption, match=words):
        kind.decide(replace(kind.options, queue="imports"), {"account_id": 7, **fields})
