"""What a handler returns: plain JSON data, pydantic models, and what its signature says; stored whole or refused."""

from __future__ import annotations

import json
from functools import cached_property
from typing import Any

from pydantic import BaseModel, ConfigDict, TypeAdapter

from jobqueue.errors import ResultRefused
from jobqueue.handlers.payload import stored

#: It leaves a NaN what it is, so that the refusal can name it.
_PLAIN: TypeAdapter[Any] = TypeAdapter(Any, config=ConfigDict(ser_json_inf_nan="constants"))


class ResultType:
    """The form of one job type's results, as the handler's signature names it. A form that is wrong harms nothing."""

    def __init__(self, form: Any = Any) -> None:
        self._form = form

    def dump(self, value: object) -> str | None:
        """Write what a handler returned as JSON; ``None`` stays nothing.

        Raises ResultRefused for what would not come back the same: the rule is that of payloads, where the signature
        says nothing it is that of a ``dict``. But a model in it may be read as what it wrote.
        """
        if value is None:
            return None
        try:
            return _stored(value, self._adapter)
        except ResultRefused:
            raise
        except Exception as error:  # a model that stumbles over itself: the work is done all the same
            raise ResultRefused(f"The result cannot be written as JSON: {type(error).__name__}") from error

    def load(self, data: Any) -> Any:
        """Make of a stored result what the handler returned, as far as its signature says what that was."""
        if data is None or self._adapter is None:
            return data
        try:
            return self._adapter.validate_json(json.dumps(data))
        except Exception:  # stored by another release, or by a handler that returns something else
            return data

    @cached_property
    def _adapter(self) -> TypeAdapter[Any] | None:
        """What reads and writes the form; nothing where that is anything, or pydantic does not know it."""
        if self._form is Any:
            return None
        try:
            adapter: TypeAdapter[Any] = TypeAdapter(self._form)
        except Exception:  # an annotation is no promise to pydantic
            return None
        return None if adapter.core_schema["type"] == "generator" else adapter  # which is read only once


def _stored(value: object, adapter: TypeAdapter[Any] | None) -> str:
    try:
        return stored(value, _PLAIN, lambda text: _read(value, text), "result", ResultRefused)
    except ResultRefused:
        if adapter is None:
            raise
    return stored(value, adapter, adapter.validate_json, "result", ResultRefused)


def _read(sent: object, text: str) -> Any:
    back = json.loads(text)
    return back if back == sent else _with_models(sent, back)


def _with_models(sent: Any, back: Any) -> Any:
    """Put models where models were: each reads what it wrote."""
    if isinstance(sent, BaseModel):
        return type(sent).model_validate_json(json.dumps(back))
    if isinstance(sent, dict) and isinstance(back, dict):
        return {key: _with_models(sent.get(key), one) for key, one in back.items()}
    if isinstance(sent, list) and isinstance(back, list):
        return [_with_models(*both) for both in zip(sent, back, strict=False)]
    return back
