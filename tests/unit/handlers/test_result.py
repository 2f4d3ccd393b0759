"""Tests of results: stored unchanged or refused, like payloads, and read back by the signature."""

from __future__ import annotations

import json
import traceback
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum, StrEnum
from typing import Any
from uuid import UUID

import pytest
from pydantic import BaseModel, Field, SecretStr, computed_field

from jobqueue.api import job
from jobqueue.errors import PayloadRefused, ResultRefused
from jobqueue.handlers.payload import PayloadType
from jobqueue.handlers.registry import registry
from jobqueue.handlers.result import ResultType

NAN, INFINITY = float("nan"), float("inf")
CANARY = "c4n4ry-5ecret"
NOON = datetime(2026, 1, 16, 12, 0, tzinfo=UTC)
PLAIN = ResultType()
ANYTHING = PayloadType(dict[str, Any])


class Colour(StrEnum):
    RED = "red"


class Shade(Enum):
    RED = 1


class Resize(BaseModel):
    image_id: int
    width: int = 800


class Rich(BaseModel):
    at: datetime
    price: Decimal
    numbers: set[int]


class Area(BaseModel):
    width: int

    @computed_field
    @property
    def size(self) -> int:
        return self.width**2


class OneWay(BaseModel):
    image_id: int = Field(serialization_alias="imageId")


class Secretive(BaseModel):
    password: SecretStr


class Odd:
    def __init__(self, words):
        self.words = words

    def __repr__(self):
        return self.words


class Quarrelsome(BaseModel):
    x: int = 1

    def __eq__(self, other):
        raise RuntimeError(CANARY)


@dataclass
class Point:
    x: int
    y: int


RICH = Rich(at=NOON, price=Decimal("1.10"), numbers={1, 2})


def _deep(levels):
    value = 0
    for _ in range(levels):
        value = {"a": value}
    return value


def _endless():
    value = {}
    value["again"] = value
    return value


# What is stored as it is


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, None),
        ("done", '"done"'),
        (True, "true"),
        ({"width": 800}, '{"width":800}'),
        ([1, 2.5, None], "[1,2.5,null]"),
        (Colour.RED, '"red"'),
        (Resize(image_id=7), '{"image_id":7,"width":800}'),
        ({"a": [Resize(image_id=7)]}, '{"a":[{"image_id":7,"width":800}]}'),
        (Area(width=3), '{"width":3,"size":9}'),
    ],
    ids=repr,
)
def test_plain_data_and_models_become_json_and_none_stays_nothing(value, text):
    assert PLAIN.dump(value) == text


def test_a_model_may_hold_whatever_it_can_read_back():
    text = PLAIN.dump([RICH])
    assert Rich.model_validate(json.loads(text)[0]) == RICH


# One rule for payloads and results


@pytest.mark.parametrize(
    ("value", "complaint"),
    [
        pytest.param({1: 1, "1": 2}, "has the key 1, which is not text", id="keys that fall together"),
        pytest.param({1: 1}, "has the key 1, which is not text", id="a key that is a number"),
        pytest.param((1, "a"), "tuple and comes back as list", id="a tuple"),
        pytest.param({1, 2}, "set and comes back as list", id="a set"),
        pytest.param(frozenset({1}), "frozenset and comes back as list", id="a frozen set"),
        pytest.param(Decimal("1.10"), "Decimal and comes back as str", id="a decimal number"),
        pytest.param(NOON, "datetime and comes back as str", id="a moment"),
        pytest.param(date(2026, 1, 16), "date and comes back as str", id="a day"),
        pytest.param(UUID(int=7), "UUID and comes back as str", id="a UUID"),
        pytest.param(b"abc", "bytes and comes back as str", id="bytes"),
        pytest.param(Shade.RED, "Shade and comes back as int", id="a member of an enumeration"),
        pytest.param(Point(1, 2), "Point and comes back as dict", id="a dataclass"),
        pytest.param("a\0", "NUL", id="NUL"),
        pytest.param("\ud800", "surrogate", id="half of a surrogate pair"),
        pytest.param(object(), "JSON", id="any object"),
    ],
)
def test_what_would_change_is_refused_on_both_sides_and_at_any_depth(value, complaint):
    with pytest.raises(PayloadRefused, match=complaint):
        ANYTHING.dump({"x": value})
    for result in (value, {"x": value}, [{"y": [value]}]):
        with pytest.raises(ResultRefused, match=complaint):
            PLAIN.dump(result)


def test_a_refusal_names_the_place_and_what_to_do():
    with pytest.raises(
        ResultRefused, match=r"result\.a\.1 is Decimal .* Use plain JSON data there, or declare its type in"
    ) as caught:
        PLAIN.dump({"a": [1, Decimal("1.5")]})
    assert "pydantic model" in str(caught.value)


@pytest.mark.parametrize(
    ("value", "complaint"),
    [
        pytest.param(NAN, "at its top", id="NaN"),
        pytest.param({"a": [1, INFINITY]}, r"at a\.1", id="infinity"),
        pytest.param(b"\xff", "JSON", id="bytes that are no text"),
        pytest.param(10**5_000, "digits", id="a number of 5,000 digits"),
        pytest.param(_deep(100_000), "JSON", id="a depth of 100,000"),
        pytest.param(_endless(), "JSON", id="a dict that holds itself"),
        pytest.param((one for one in [object()]), "JSON", id="a generator of objects"),
        pytest.param((one for one in [1]), "JSON", id="a generator of numbers"),
        pytest.param(OneWay(image_id=7), "read back", id="a model that cannot read what it writes"),
        pytest.param([Secretive(password=CANARY)], "not the same", id="a secret that JSON shows as asterisks"),
        pytest.param(Quarrelsome(), "RuntimeError", id="a model that fails at its own comparison"),
    ],
)
@pytest.mark.filterwarnings("ignore::UserWarning")  # pydantic's, of generators
def test_a_result_that_is_not_json_is_refused(value, complaint):
    with pytest.raises(ResultRefused, match=complaint):
        PLAIN.dump(value)


def test_a_result_may_be_as_large_as_the_limit_and_no_larger(settings):
    settings.JOBQUEUE = {"MAX_RESULT_BYTES": 1_000}
    assert len(PLAIN.dump("a" * 998)) == 1_000
    with pytest.raises(ResultRefused) as caught:
        PLAIN.dump("a" * 999)
    assert all(word in str(caught.value) for word in ("result", "1,001 bytes", "MAX_RESULT_BYTES", "1,000"))


@pytest.mark.parametrize(
    "value",
    [
        pytest.param({"x": CANARY, "y": NAN}, id="NaN"),
        pytest.param({"x": CANARY, "y": object()}, id="any object"),
        pytest.param({"x": Odd(CANARY)}, id="an object that shows itself"),
        pytest.param({"x": CANARY.encode() + b"\xff"}, id="bytes that are no text"),
        pytest.param((CANARY,), id="a tuple"),
        pytest.param({CANARY}, id="a set"),
        pytest.param(f"{CANARY}\0", id="NUL"),
        pytest.param(f"{CANARY}\ud800", id="half of a surrogate pair"),
        pytest.param(CANARY * 100_000, id="too large"),
        pytest.param(Secretive(password=CANARY), id="a model that would change"),
    ],
)
def test_a_refused_result_is_told_without_its_values(value):
    with pytest.raises(ResultRefused) as caught:
        PLAIN.dump(value)
    told = "".join((str(caught.value), repr(caught.value), *traceback.format_exception(caught.value)))
    assert CANARY not in told


# What a signature says


@pytest.mark.parametrize(
    ("form", "value"),
    [
        (Resize, Resize(image_id=7)),
        (list[Resize], [Resize(image_id=7)]),
        (Resize | None, None),
        (datetime, NOON),
        (Decimal, Decimal("1.10")),
        (UUID, UUID(int=7)),
        (set[int], {1, 2}),
        (tuple[int, str], (1, "a")),
        (dict[int, str], {1: "a"}),
        (Point, Point(1, 2)),
        (bytes, b"abc"),
        (dict[str, Any], {"a": [1, None]}),
    ],
    ids=repr,
)
def test_what_the_signature_says_is_stored_and_read_back_as_that(form, value):
    results = ResultType(form)
    text = results.dump(value)
    assert results.load(None if text is None else json.loads(text)) == value


@pytest.mark.parametrize("form", [None, str, Iterable[int], Odd, "nothing there", tuple[int, Odd], Resize])
def test_a_signature_that_is_wrong_harms_nothing(form):
    results = ResultType(form)
    assert results.dump([1, 2]) == "[1,2]"
    assert results.load([1, 2]) == [1, 2]


def test_what_the_signature_says_does_not_open_the_door_to_what_would_change():
    with pytest.raises(ResultRefused, match="not the same"):
        ResultType(dict[str, Any]).dump({"at": NOON})
    with pytest.raises(ResultRefused, match="not the same"):
        ResultType(str | datetime).dump(NOON)


def test_a_handler_tells_the_form_of_its_results(monkeypatch):
    monkeypatch.setattr(registry, "_types", {})

    def handler_of_days() -> set[date]: ...

    made = job("handler_of_days")(handler_of_days).job_type.result
    assert made.load(json.loads(made.dump({date(2026, 1, 16)}))) == {date(2026, 1, 16)}
