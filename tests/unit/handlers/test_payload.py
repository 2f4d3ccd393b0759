"""Tests of payloads: validation, refusals, upgrades, and errors without values."""

from __future__ import annotations

import json
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from typing import Any
from uuid import UUID

import pytest
from pydantic import BaseModel, ConfigDict, Field, JsonValue, SecretStr, ValidationError, field_validator

from jobqueue.errors import PayloadInvalid, PayloadRefused, PayloadTooNew
from jobqueue.handlers.payload import PayloadType

NAN, INFINITY = float("nan"), float("inf")
CANARY = "c4n4ry-5ecret"
ANYTHING = PayloadType(dict[str, Any])


class Colour(StrEnum):
    RED = "red"


class Resize(BaseModel):
    image_id: int
    width: int = 800


class Rich(BaseModel):
    at: datetime
    day: date
    length: timedelta
    price: Decimal
    id: UUID
    colour: Colour
    data: bytes
    pair: tuple[int, str]
    numbers: set[int]
    by_number: dict[int, str]
    inner: list[Resize]


@dataclass
class Point:
    x: int
    y: int


def _deep(levels):
    value = 0
    for _ in range(levels):
        value = {"a": value}
    return value


def _endless():
    value = {}
    value["again"] = value
    return value


# What comes back


def test_a_model_comes_back_equal():
    payloads = PayloadType(Resize)
    text = payloads.dump({"image_id": "7"})
    assert json.loads(text) == {"image_id": 7, "width": 800}
    assert payloads.load(text, 1) == Resize(image_id=7)


def test_a_model_that_says_how_its_values_look_may_hold_more_than_json_knows():
    rich = Rich(
        at=datetime(2026, 1, 16, 12, 0, tzinfo=UTC),
        day=date(2026, 1, 16),
        length=timedelta(days=1, microseconds=1),
        price=Decimal("1.10"),
        id=UUID(int=7),
        colour=Colour.RED,
        data=b"bytes",
        pair=(1, "a"),
        numbers={1, 2},
        by_number={1: "a"},
        inner=[Resize(image_id=7)],
    )
    payloads = PayloadType(Rich)
    assert payloads.load(payloads.dump(rich), 1) == rich


@pytest.mark.parametrize("form", [Point, dict[str, int], list[int], int])
def test_a_payload_may_be_of_any_form_that_pydantic_reads(form):
    value = {Point: {"x": 1, "y": 2}, dict[str, int]: {"x": 1}, list[int]: [1], int: 1}[form]
    payloads = PayloadType(form)
    assert payloads.load(payloads.dump(value), 1) == (Point(1, 2) if form is Point else value)


def test_an_alias_is_used_both_ways():
    class Aliased(BaseModel):
        model_config = ConfigDict(validate_by_name=True)
        image_id: int = Field(alias="imageId")

    payloads = PayloadType(Aliased)
    text = payloads.dump(Aliased(image_id=7))
    assert json.loads(text) == {"imageId": 7}
    assert payloads.load(text, 1) == Aliased(image_id=7)


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"": ""},
        {"ä🙂": "ä🙂"},
        {"a": [1, 1.5, True, None, "x", {}]},
        {"a": 10**4_000},
        {"a": "\\u0000"},
        _deep(100),
    ],
    ids=["empty", "empty text", "beyond ascii", "of all kinds", "a long number", "no real NUL", "a hundred levels"],
)
def test_what_json_can_say_is_taken_where_anything_is_allowed(value):
    assert ANYTHING.load(ANYTHING.dump(value), 1) == value


def test_the_text_is_compact():
    assert ANYTHING.dump({"a": [1, "ä"]}) == '{"a":[1,"ä"]}'


# What is refused


@pytest.mark.parametrize(
    ("value", "complaint"),
    [
        pytest.param({"x": NAN}, r"\bx\b", id="NaN"),
        pytest.param({"x": [1, INFINITY]}, r"\bx\.1\b", id="infinity"),
        pytest.param({"x": -INFINITY}, r"\bx\b", id="minus infinity"),
        pytest.param({"x": b"bytes"}, r"\bx is bytes", id="bytes"),
        pytest.param({"x": b"\xff"}, "JSON", id="bytes that are no text"),
        pytest.param({"x": {"y": (1, 2)}}, r"\bx\.y is tuple", id="a tuple"),
        pytest.param({"x": {1}}, r"\bx is set", id="a set"),
        pytest.param({"x": {1: 2}}, r"\bx has the key 1, which is not text", id="a key that is no text"),
        pytest.param({"x": {None: 2}}, r"\bx has the key None", id="None as a key"),
        pytest.param({"x": {(1, 2): 2}}, r"JSON|key", id="a tuple as a key"),
        pytest.param({"x": datetime(2026, 1, 16, tzinfo=UTC)}, r"\bx is datetime", id="a datetime"),
        pytest.param({"x": Decimal(1)}, r"\bx is Decimal", id="a decimal"),
        pytest.param({"x": Resize(image_id=7)}, r"\bx\b", id="a model"),
        pytest.param({"x": object()}, "JSON", id="any object"),
        pytest.param({"x": len}, "JSON", id="a function"),
        pytest.param({"x": "a\0b"}, "NUL", id="NUL"),
        pytest.param({"x": "\\\0"}, "NUL", id="NUL after a backslash"),
        pytest.param({"a\0b": 1}, "NUL", id="NUL in a key"),
        pytest.param({"x": "\ud800"}, "surrogate", id="half of a surrogate pair"),
        pytest.param({"\udfff": 1}, "surrogate|JSON", id="half of a surrogate pair in a key"),
        pytest.param({"x": 10**5_000}, "digits", id="a number of 5,000 digits"),
        pytest.param({"x": -(10**5_000)}, "digits", id="a negative number of 5,000 digits"),
        pytest.param(_deep(100_000), "JSON", id="a depth of 100,000"),
        pytest.param(_deep(500), "JSON", id="a depth of 500"),
        pytest.param(_endless(), "JSON", id="a dict that holds itself"),
    ],
)
def test_what_json_cannot_say_is_refused_where_anything_is_allowed(value, complaint):
    with pytest.raises(PayloadRefused, match=complaint):
        ANYTHING.dump(value)


FORMS = [dict[str, Any], dict, Mapping[str, Any], dict[str, object], dict[str, list], dict[str, list[Any]]]


@pytest.mark.parametrize("form", FORMS, ids=str)
@pytest.mark.parametrize("value", [NAN, b"bytes", (1, 2)], ids=["NaN", "bytes", "a tuple"])
def test_every_way_to_allow_anything_is_known(form, value):
    with pytest.raises(PayloadRefused):
        PayloadType(form).dump({"x": [value]})


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")
    image_id: int


@pytest.mark.parametrize("value", [NAN, b"bytes", (1, 2), {1: 2}, date(2026, 1, 16)])
def test_extra_fields_are_anything_too(value):
    with pytest.raises(PayloadRefused):
        PayloadType(Open).dump({"image_id": 7, "extra": value})


class Hiding(BaseModel):
    image_id: int
    note: str = Field("", exclude=True)


class Secretive(BaseModel):
    password: SecretStr


class Lax(BaseModel):
    value: UUID | str


@pytest.mark.parametrize(
    "payload",
    [
        pytest.param(Hiding(image_id=7, note="kept?"), id="a field that is left out of JSON"),
        pytest.param(Secretive(password=CANARY), id="a secret that JSON shows as asterisks"),
        pytest.param(Lax(value=str(UUID(int=7))), id="a text that comes back as another type"),
    ],
)
def test_a_model_that_would_come_back_changed_is_refused(payload):
    with pytest.raises(PayloadRefused, match="not the same"):
        PayloadType(type(payload)).dump(payload)


@pytest.mark.parametrize("value", [NAN, INFINITY])
@pytest.mark.parametrize("form", [float, float | None, JsonValue], ids=str)
def test_no_form_lets_a_number_through_that_is_none(form, value):
    with pytest.raises((PayloadRefused, ValidationError)):
        PayloadType(dict[str, form]).dump({"x": value})


def test_the_place_of_a_number_that_is_none_is_named():
    class Weigh(BaseModel):
        kilos: float

    with pytest.raises(PayloadRefused, match="at kilos"):
        PayloadType(Weigh).dump({"kilos": NAN})


def test_a_payload_that_cannot_be_read_back_is_refused():
    class OneWay(BaseModel):
        image_id: int = Field(serialization_alias="imageId")

    with pytest.raises(PayloadRefused, match=r"read back.*\n.*image_id: missing"):
        PayloadType(OneWay).dump({"image_id": 7})


def test_a_refusals_message_can_be_written_anywhere():
    with pytest.raises(PayloadRefused) as caught:
        ANYTHING.dump({"\ud800": 1})
    str(caught.value).encode()


# How large


def test_a_payload_may_be_as_large_as_the_limit_and_no_larger(settings):
    settings.JOBQUEUE = {"MAX_PAYLOAD_BYTES": 1_000}
    frame = len(ANYTHING.dump({"x": ""}))
    assert len(ANYTHING.dump({"x": "a" * (1_000 - frame)})) == 1_000
    with pytest.raises(PayloadRefused) as caught:
        ANYTHING.dump({"x": "a" * (1_001 - frame)})
    assert all(word in str(caught.value) for word in ("payload", "1,001 bytes", "MAX_PAYLOAD_BYTES", "1,000"))


def test_the_limit_counts_bytes_and_not_characters(settings):
    settings.JOBQUEUE = {"MAX_PAYLOAD_BYTES": 1_000}
    with pytest.raises(PayloadRefused, match="MAX_PAYLOAD_BYTES"):
        ANYTHING.dump({"x": "ä" * 600})


# Versions


def _named(data):
    return {"name": data["who"]}


def _split(data):
    first, _, last = data["name"].partition(" ")
    return {"first": first, "last": last}


class Person(BaseModel):
    first: str
    last: str


PEOPLE = PayloadType(Person, version=3, upgraders={1: _named, 2: _split})


@pytest.mark.parametrize(
    ("text", "version"),
    [('{"who":"Ada Lovelace"}', 1), ('{"name":"Ada Lovelace"}', 2), ('{"first":"Ada","last":"Lovelace"}', 3)],
)
def test_a_payload_of_any_version_is_read(text, version):
    assert PEOPLE.load(text, version) == Person(first="Ada", last="Lovelace")


def test_a_payload_from_the_future_is_too_new():
    with pytest.raises(PayloadTooNew, match="version 4, but this release reads up to version 3"):
        PEOPLE.load("{}", 4)


def test_a_gap_between_versions_is_told():
    with pytest.raises(PayloadInvalid, match="payload version 2") as caught:
        PayloadType(Person, version=3, upgraders={1: _named}).load('{"who":"Ada Lovelace"}', 1)
    assert not isinstance(caught.value, PayloadTooNew)


def test_an_upgraders_failure_is_told_by_its_class():
    with pytest.raises(PayloadInvalid, match="version 1 raised KeyError"):
        PEOPLE.load('{"whom":"Ada"}', 1)


def test_a_version_that_never_was_is_refused_at_once():
    with pytest.raises(PayloadInvalid, match="There is no upgrader from payload version -2147483648"):
        PEOPLE.load('{"whom":"Ada"}', -(2**31))


# Errors keep quiet


def _printed(error):
    """Everything that a log, a tracker or the history could show of an error."""
    return "".join((str(error), repr(error), *traceback.format_exception(error)))


def _telling(data):
    raise ValueError(f"cannot upgrade {data}")


class Strict(BaseModel):
    image_id: int
    scores: dict[str, int] = {}

    @field_validator("image_id")
    @classmethod
    def _refuse(cls, value):
        if value < 0:
            raise ValueError(f"{CANARY} is the value")
        return value


@pytest.mark.parametrize(
    ("payloads", "data", "version"),
    [
        pytest.param(PayloadType(Strict), {"image_id": CANARY}, 1, id="a value of the wrong type"),
        pytest.param(PayloadType(Strict), {"image_id": -1}, 1, id="a validator that tells"),
        pytest.param(PayloadType(Strict), {"scores": {"a": CANARY}}, 1, id="a value deeper down"),
        pytest.param(PayloadType(Strict), {"image_id": 7, "scores": {CANARY: "x"}}, 1, id="a key that is data"),
        pytest.param(PayloadType(Strict), [CANARY], 1, id="another form altogether"),
        pytest.param(PayloadType(Strict, 2, {1: _telling}), {"image_id": CANARY}, 1, id="an upgrader that tells"),
        pytest.param(PayloadType(Strict, 2, {1: lambda data: data}), {"image_id": CANARY}, 1, id="after an upgrade"),
        pytest.param(PayloadType(Strict), {"image_id": CANARY}, 2, id="a version from the future"),
        pytest.param(PayloadType(Strict, 2), {"image_id": CANARY}, 1, id="a version without an upgrader"),
    ],
)
def test_an_unreadable_payload_is_told_without_its_values(payloads, data, version):
    with pytest.raises(PayloadInvalid) as caught:
        payloads.load(json.dumps(data), version)
    assert CANARY not in _printed(caught.value)


@pytest.mark.parametrize("text", [f'{{"image_id": "{CANARY}"', f'"{CANARY}', "", "nul"])
def test_a_payload_that_is_no_json_is_told_without_its_text(text):
    with pytest.raises(PayloadInvalid, match="json_invalid") as caught:
        PayloadType(Strict).load(text, 1)
    assert CANARY not in _printed(caught.value)


class OneWay(BaseModel):
    secret: str = Field(serialization_alias="hidden")


@pytest.mark.parametrize(
    ("payloads", "value"),
    [
        pytest.param(ANYTHING, {"x": CANARY, "y": NAN}, id="NaN"),
        pytest.param(ANYTHING, {"x": CANARY.encode()}, id="bytes"),
        pytest.param(ANYTHING, {"x": CANARY.encode() + b"\xff"}, id="bytes that are no text"),
        pytest.param(ANYTHING, {"x": (CANARY,)}, id="a tuple"),
        pytest.param(ANYTHING, {"x": f"{CANARY}\0"}, id="NUL"),
        pytest.param(ANYTHING, {"x": f"{CANARY}\ud800"}, id="half of a surrogate pair"),
        pytest.param(ANYTHING, {"x": CANARY * 100_000}, id="too large"),
        pytest.param(PayloadType(OneWay), {"secret": CANARY}, id="not readable again"),
    ],
)
def test_a_refused_payload_is_told_without_its_values(payloads, value):
    with pytest.raises(PayloadRefused) as caught:
        payloads.dump(value)
    assert CANARY not in _printed(caught.value)
