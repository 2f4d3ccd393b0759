"""Tests of limits in code: what is refused, and which keys a producer stores."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from pydantic import BaseModel

from jobqueue import Concurrency, InvalidHandler, InvalidOption, Rate
from jobqueue.handlers.limits import declared
from jobqueue.handlers.options import Options
from jobqueue.handlers.registry import job_type
from jobqueue.policy.limits.limits import LimitBook
from jobqueue.policy.queue_options import mistakes
from jobqueue.policy.retry import RetryPolicy


def kind_of(function, *limits, **options):
    given = {"options": Options(**options), "policy": RetryPolicy(), "aliases": ("former",), "version": 1}
    return job_type(function, None, **given, upgraders=None, limits=limits)


def sync(account_id: int, region: str | None = None, parts: list[int] = []) -> None:  # noqa: B006 - a default of a field
    """A handler."""


def of_region(payload) -> str:
    return payload.region.upper()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Concurrency(0), "Concurrency must be a whole number from 1 to 1,000,000,000, got 0"),
        (lambda: Concurrency(True), "Concurrency must be a whole number"),
        (lambda: Rate(-1, per=1), "Rate must be a whole number from 1"),
        (lambda: Rate(1, per=0), "per must be from 0.001 to 2,678,400 seconds, got 0"),
        (lambda: Rate(1, per="minute"), "per must be seconds or a timedelta, got 'minute'"),
        (lambda: Concurrency(1, key=7), "key must be the name of a payload field, or a function, got 7"),
        (lambda: Concurrency(1, key=lambda payload: payload), "key must have a name that identifies it"),
        (lambda: kind_of(sync, 5), "limits must be a list of Concurrency and Rate, got 5 in it"),
        (lambda: kind_of(sync, Concurrency(1), Concurrency(2)), "differs only in the number"),
    ],
)
def test_a_limit_that_cannot_hold_is_refused(make, words):
    with pytest.raises(InvalidOption, match=words.replace("(", r"\(")):
        make()


def test_a_key_must_be_a_field_of_the_payload():
    with pytest.raises(InvalidHandler, match=r"sync.* has a limit with the key 'acount_id'.*Did you mean 'account_id'"):
        kind_of(sync, Concurrency(1, key="acount_id"))


@pytest.mark.parametrize(
    ("limits", "fields", "keys"),
    [
        ([Concurrency(1)], {}, None),
        ([Concurrency(1, key="account_id")], {}, {"account_id": "7"}),
        ([Concurrency(1, key="region"), Rate(1, per=1, key="tenant")], {}, {"tenant": "acme"}),
        ([Rate(1, per=1, key=of_region)], {"region": "eu"}, {"of_region": "EU"}),
        ([Rate(1, per=1, key="workspace")], {}, {}),
    ],
)
def test_the_keys_travel_with_the_job(limits, fields, keys):
    kind = kind_of(sync, *limits)
    draft = kind.decide(replace(kind.options, tenant="acme"), {"account_id": 7, **fields})
    assert (draft.concurrency_key and json.loads(draft.concurrency_key)) == keys


@pytest.mark.parametrize(
    ("key", "fields", "words"),
    [
        ("parts", {"parts": [1]}, "parts is the key of a limit, and must be text or a number, got a list"),
        ("region", {"region": "é" * 256}, "region is the key of a limit; the keys of a job must have at most 255"),
        ("region", {"region": "a\nb"}, "region is the key of a limit, and must be one line"),
    ],
)
def test_a_value_that_is_no_key_is_refused_with_its_name(key, fields, words):
    kind = kind_of(sync, Concurrency(1, key=key))
    with pytest.raises(InvalidOption, match=words):
        kind.decide(kind.options, {"account_id": 7, **fields})


def test_what_a_key_function_raises_goes_to_the_caller():
    kind = kind_of(sync, Concurrency(1, key=of_region))
    with pytest.raises(AttributeError):
        kind.decide(kind.options, {"account_id": 7})


def test_a_field_with_an_alias_is_a_key():
    class Payload(BaseModel):
        account: int

        model_config = {"alias_generator": str.upper}

    def send(payload: Payload) -> None:
        """A handler."""

    send.__annotations__["payload"] = Payload
    kind = kind_of(send, Concurrency(1, key="account"))
    assert kind.decide(kind.options, {"ACCOUNT": 3}).concurrency_key == '{"account":"3"}'


def test_limits_of_queues_come_from_the_entry_that_applies(settings):
    settings.JOBQUEUE = {
        "QUEUES": {
            "import.*": {"limits": [Concurrency(2), Rate(5, per=60, key="tenant")]},
            "import.fast": {"capacity": 5},
        }
    }
    kind = kind_of(sync, Concurrency(9))
    limits, names, entries = declared([kind])
    book = LimitBook(limits, names, entries=entries)
    assert [one.number for one in book.of("import.a", "former")] == [9, 2, 5]
    assert [one.number for one in book.of("import.fast", "sync")] == [9]
    draft = kind.decide(replace(kind.options, queue="import.a", tenant="acme"), {"account_id": 7})
    assert draft.concurrency_key == '{"tenant":"acme"}'


@pytest.mark.parametrize(
    ("given", "words"),
    [(5, "limits must be a list"), ([5], "got 5 in it"), ([Rate(1, per=1), Rate(2, per=1)], "only in the number")],
)
def test_mistakes_in_the_limits_of_a_queue_are_named(given, words):
    (mistake,) = mistakes({"mail": {"limits": given}})
    assert "JOBQUEUE['QUEUES']['mail']['limits'] must be a list of Concurrency and Rate" in mistake.sentence
    assert words in mistake.hint
