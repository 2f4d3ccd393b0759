"""Handlers with editable and uneditable payloads, registered only by the tests that need them."""

from __future__ import annotations

from pydantic import BaseModel, field_validator

from jobqueue import job


class Account(BaseModel):
    name: str
    password: str = ""
    limits: list[dict[str, int | str]] = []

    @field_validator("password")
    @classmethod
    def _is_even(cls, value: str) -> str:
        if len(value) % 2:
            raise ValueError(f"{value!r} has an odd length")
        return value


def charge(payload: Account) -> str:
    return payload.name


def anything_goes(payload: dict[str, object]) -> None:
    return None


def settled_by_others(account: str) -> str:
    return account


def renamed(user_id: int) -> int:
    return user_id


def register() -> None:
    """Make job types of them."""
    job("charge", max_retries=1)(charge)
    job("anything_goes", max_retries=1)(anything_goes)
    job("settled_by_others", max_retries=1, editable=False)(settled_by_others)
    job("renamed", version=2, upgraders={1: lambda data: {"user_id": data["user"]}})(renamed)
