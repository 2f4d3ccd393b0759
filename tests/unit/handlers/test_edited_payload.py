"""Tests of edited payloads: validated by the current form, with messages that quote no values."""

from __future__ import annotations

from datetime import date

import pytest
from pydantic import BaseModel, field_validator

from jobqueue.errors import PayloadInvalid, PayloadRefused, PayloadTooNew, PayloadUnfit
from jobqueue.handlers.payload import PayloadType

SECRET = "hunter2-and-more"


class Account(BaseModel):
    name: str
    password: str = ""

    @field_validator("password")
    @classmethod
    def _is_long(cls, value: str) -> str:
        if value == "stumble":
            raise KeyError(value)
        if len(value) % 2:
            raise ValueError(f"{value!r} has an odd length")
        return value


class Mail(BaseModel):
    user_id: int
    day: date | None = None
    account: Account | None = None


@pytest.fixture
def form():
    return PayloadType(Mail)


def test_what_fits_is_written_as_it_is_stored(form):
    assert form.dump_edited({"user_id": "7", "day": "2026-01-02"}) == (
        '{"user_id":7,"day":"2026-01-02","account":null}'
    )


def test_what_does_not_fit_is_told_place_by_place(form):
    with pytest.raises(PayloadUnfit) as caught:
        form.dump_edited({"user_id": "seven", "account": {"password": "even"}})
    assert [place for place, _words in caught.value.complaints] == ["user_id", "account.name"]
    assert "valid integer" in caught.value.complaints[0][1]
    assert "user_id: " in str(caught.value)
    assert "seven" not in str(caught.value)


def test_a_secret_that_a_validator_quotes_is_redacted(form):
    with pytest.raises(PayloadUnfit) as caught:
        form.dump_edited({"user_id": 7, "account": {"name": "Ada", "password": SECRET + "!"}})
    assert SECRET not in str(caught.value)
    assert "odd length" in str(caught.value)


def test_a_validator_that_stumbles_is_told_by_its_errors_name(form):
    with pytest.raises(PayloadUnfit, match="its validation raised KeyError"):
        form.dump_edited({"user_id": 7, "account": {"name": "Ada", "password": "stumble"}})


@pytest.mark.parametrize("data", [[], None, 7, "text", {"user_id": None}])
def test_another_kind_of_json_does_not_fit(form, data):
    with pytest.raises(PayloadUnfit):
        form.dump_edited(data)


@pytest.mark.parametrize("data", [{"user_id": float("nan")}, {"user_id": 7, "x": "\0"}, {"user_id": "\ud800"}])
def test_what_no_table_can_hold_is_refused(form, data):
    with pytest.raises(PayloadRefused):
        form.dump_edited(data)


def test_an_old_payload_is_brought_to_todays_version():
    form = PayloadType(Mail, version=2, upgraders={1: lambda data: {"user_id": data["user"]}})
    assert form.upgraded('{"user": 7}', 1) == '{"user_id": 7}'
    assert form.upgraded('{"user_id": 7}', 2) == '{"user_id": 7}'
    with pytest.raises(PayloadInvalid):
        form.upgraded('{"nobody": 7}', 1)
    with pytest.raises(PayloadTooNew):
        form.upgraded("{}", 3)
