"""The request of the capture view: one conversation, as a hook reports it in JSON."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator
from pydantic_core import ErrorDetails

from example_project.capture.models import new_id

#: The longest event. The view reads no further.
MAX_BODY_BYTES = 1_000_000
_ULID = r"^[0-7][0-9A-HJKMNP-TV-Z]{25}$"


class Said(BaseModel):
    """One raw message. It is only kept in memory, until it is sanitised."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    role: Literal["user", "assistant", "system", "tool"]
    content: Annotated[str, Field(min_length=1, max_length=200_000)]

    @field_validator("content")
    @classmethod
    def _can_be_stored(cls, content: str) -> str:
        if "\0" in content:
            raise ValueError("holds a NUL character, which is not text")
        return content


class Event(BaseModel):
    """A conversation. A sender that gives it an id can send it again; it is captured once."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    conversation_id: Annotated[str, Field(pattern=_ULID)] = Field(default_factory=new_id)
    source: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,49}$")] = "hook"
    messages: Annotated[list[Said], Field(min_length=1, max_length=200)]


def problems(error: ValidationError) -> list[dict[str, str]]:
    """Return what is wrong with an event and where, without its values."""
    found = error.errors(include_input=False, include_url=False, include_context=False)
    return [{"field": ".".join(_place(one)), "problem": one["msg"]} for one in found[:20]]


def _place(problem: ErrorDetails) -> list[str]:
    """Return the path of an error. Names of unknown fields are the sender's, so they are left out."""
    known = problem["loc"][:-1] if problem["type"] == "extra_forbidden" else problem["loc"]
    return list(map(str, known))
