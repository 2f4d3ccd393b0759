"""The arguments of tasks as payloads: by name if every parameter has one, otherwise as ``args`` and ``kwargs``."""

from __future__ import annotations

import inspect
import json
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, PydanticUserError, TypeAdapter, create_model

from jobqueue import foreign_json
from jobqueue.errors import PayloadRefused
from jobqueue.handlers.payload import PayloadType, stored
from jobqueue.handlers.signature import Signature

_ANY: TypeAdapter[Any] = TypeAdapter(Any, config=ConfigDict(ser_json_inf_nan="constants"))
_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


class PackedArguments(BaseModel):
    """The payload of a task with ``*args``, ``**kwargs`` or nameless parameters."""

    model_config = ConfigDict(extra="forbid")

    args: list[Any] = []
    kwargs: dict[str, Any] = {}


@dataclass(frozen=True, slots=True)
class TaskSignature(Signature):
    """The signature of a task's function, without the context."""

    @classmethod
    def of_task(cls, function: Callable[..., Any], *, takes_context: bool) -> TaskSignature:
        """Analyse a function. Annotations are not used: a task gets the JSON data that was enqueued."""
        signature = inspect.signature(function)
        parameters = [*signature.parameters.values()][1 if takes_context else 0 :]
        bare = inspect.Signature(parameters)
        named = _model_of(function, parameters) if all(one.kind in _NAMED for one in parameters) else None
        return cls(named or PackedArguments, None, None, bare)

    @property
    def is_packed(self) -> bool:
        """Return whether the payload is ``args`` and ``kwargs`` rather than the arguments by name."""
        return self.form is PackedArguments

    def payload_of(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Return the payload from the arguments of a call. Raise TypeError, as the call would, if they don't fit."""
        self.parameters.bind(*args, **kwargs)
        if self.is_packed:
            return {"args": list(args), "kwargs": dict(kwargs)}
        return {**dict(zip(self.parameters.parameters, args, strict=False)), **kwargs}

    def call_of(self, payload: object, positional: int = 0) -> tuple[list[Any], dict[str, Any]]:
        """Return the arguments of the call from its payload, of which the first may have been given by position."""
        given = payload if isinstance(payload, dict) else {}
        if self.is_packed:
            args, kwargs = given.get("args"), given.get("kwargs")
            return (args if isinstance(args, list) else []), (kwargs if isinstance(kwargs, dict) else {})
        first = [*self.parameters.parameters][: max(0, positional)]
        args = [given[name] for name in first if name in given]
        return args, {name: value for name, value in given.items() if name not in first}


class TaskPayload(PayloadType[Any]):
    """Payloads of tasks. Only given arguments are stored: defaults are those of the release that runs the task."""

    def dump(self, value: object) -> str:
        """Validate a payload and return it as JSON. Raises ValidationError and PayloadRefused."""
        given = self._adapter.validate_python(value).model_dump(exclude_unset=True)
        return stored(given, _ANY, json.loads, "payload", PayloadRefused)


def read_payload(text: str) -> object:
    """Return a stored payload, whatever another program made of it."""
    found = foreign_json.read(text)
    return {} if isinstance(found, foreign_json.Unreadable) else found


def _model_of(function: Callable[..., Any], parameters: Sequence[inspect.Parameter]) -> type[BaseModel] | None:
    """Return a model with a field for each parameter, or ``None`` if a name cannot be that of a field."""
    fields: dict[str, Any] = {one.name: (Any, ... if one.default is one.empty else one.default) for one in parameters}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # a parameter called `json` hides a method, which does no harm
            model = create_model(
                f"{function.__name__}_arguments",
                __config__=ConfigDict(extra="forbid", protected_namespaces=()),
                **fields,
            )
    except (NameError, TypeError, ValueError, PydanticUserError):
        return None
    return model if set(model.model_fields) == set(fields) else None
