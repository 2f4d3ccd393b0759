"""Results: plain JSON data, pydantic models, and whatever the handler's signature declares."""

from __future__ import annotations

import json
from functools import cached_property
from typing import Any

from pydantic import BaseModel, ConfigDict, TypeAdapter

from jobqueue.errors import ResultRefused
from jobqueue.handlers.payload import stored

#: Writes NaN as such, so that the error can name it.
_PLAIN: TypeAdapter[Any] = TypeAdapter(Any, config=ConfigDict(ser_json_inf_nan="constants"))


class ResultType:
    """The form of one job type's results, from the handler's signature. An unsupported form does no harm."""

    def __init__(self, form: Any = Any) -> None:
        self._form = form

    def dump(self, value: object) -> str | None:
        """Return a handler's return value as JSON, or ``None`` for ``None``.

        Raises ResultRefused for a value that would not be read back the same. The rule is that of payloads; without a
        declared type it is that of a ``dict``, except that each pydantic model in it is read back as itself.
        """
        if value is None:
            return None
        try:
            return _stored(value, self._adapter)
        except ResultRefused:
            raise
        except Exception as error:  # a model that can't be written; the work is done nevertheless
            raise ResultRefused(f"The result cannot be written as JSON: {type(error).__name__}") from error

    def load(self, data: Any) -> Any:
        """Return a stored result as the type that the handler's signature declares, or else as JSON data."""
        if data is None or self._adapter is None:
            return data
        try:
            return self._adapter.validate_json(json.dumps(data))
        except Exception:  # stored by another release, or not of the declared type
            return data

    @cached_property
    def _adapter(self) -> TypeAdapter[Any] | None:
        """Return the adapter of the form, or ``None`` if that is ``Any`` or unknown to pydantic."""
        if self._form is Any:
            return None
        try:
            adapter: TypeAdapter[Any] = TypeAdapter(self._form)
        except Exception:  # pydantic need not support every annotation
            return None
        return None if adapter.core_schema["type"] == "generator" else adapter  # a generator can be read only once


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
    """Return data that was read from JSON. Where ``sent`` has a pydantic model, the result has one too."""
    if isinstance(sent, BaseModel):
        return type(sent).model_validate_json(json.dumps(back))
    if isinstance(sent, dict) and isinstance(back, dict):
        return {key: _with_models(sent.get(key), one) for key, one in back.items()}
    if isinstance(sent, list) and isinstance(back, list):
        return [_with_models(*both) for both in zip(sent, back, strict=False)]
    return back
