"""The signature of a handler, and the form of the payload that it implies: a model, a dict, or its parameters."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, get_origin

from pydantic import BaseModel, ConfigDict, PydanticUserError, ValidationError, create_model
from pydantic_core import InitErrorDetails

from jobqueue.errors import InvalidHandler
from jobqueue.handlers.context import JobContext


@dataclass(frozen=True, slots=True)
class Signature:
    """How a handler is called: with its payload whole or spread over parameters, with or without a context."""

    form: Any
    payload_parameter: str | None
    context_parameter: str | None
    parameters: inspect.Signature
    returns: Any = Any

    @classmethod
    def of(cls, function: Callable[..., Any], where: str) -> Signature:
        """Analyse a function's signature. Raise InvalidHandler for one that no payload can fill."""
        _refuse_method(function, (), where)
        try:
            signature = inspect.signature(function, eval_str=True)
        except (NameError, TypeError) as error:
            raise InvalidHandler(
                f"The annotations of {where} cannot be read ({error}). They are needed at run time: "
                f"import their names outside of TYPE_CHECKING."
            ) from error
        _refuse_method(function, signature.parameters, where)
        context, rest = None, []
        for parameter in signature.parameters.values():
            _refuse_odd_kind(parameter, where)
            if parameter.annotation is JobContext or (
                parameter.name == "ctx" and parameter.annotation is parameter.empty
            ):
                context = parameter.name
            else:
                rest.append(parameter)
        bare = signature.replace(parameters=rest, return_annotation=inspect.Signature.empty)
        returns = Any if signature.return_annotation is signature.empty else signature.return_annotation
        if len(rest) == 1 and _is_whole(rest[0].annotation):
            return cls(rest[0].annotation, rest[0].name, context, bare, returns)
        return cls(_derived(function, rest, where), None, context, bare, returns)

    def payload_of(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> object:
        """Return the payload from the arguments of ``enqueue``, which are the whole payload or its fields.

        Raises pydantic's ValidationError for arguments that don't match a parameter. The form validates the fields.
        """
        if self.payload_parameter is None:
            return self._fields_of(args, kwargs) if args else kwargs
        if len(args) == 1 and not kwargs:
            return args[0]
        if args:
            named = [_misplaced("unexpected_keyword_argument", name, one) for name, one in kwargs.items()]
            raise self._mistaken([*self._too_many(args, 1), *named])
        if set(kwargs) == {self.payload_parameter} and isinstance(kwargs[self.payload_parameter], (BaseModel, dict)):
            return kwargs[self.payload_parameter]
        return kwargs

    def _fields_of(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return all arguments by name."""
        places = [one.name for one in self.parameters.parameters.values() if one.kind is one.POSITIONAL_OR_KEYWORD]
        given = dict(zip(places, args, strict=False))
        twice = [_misplaced("multiple_argument_values", name, kwargs[name]) for name in given if name in kwargs]
        if twice or len(args) > len(places):
            raise self._mistaken([*self._too_many(args, len(places)), *twice])
        return {**given, **kwargs}

    def _too_many(self, args: tuple[Any, ...], most: int) -> list[InitErrorDetails]:
        extra = enumerate(args[most:], start=most)
        return [_misplaced("unexpected_positional_argument", place, one) for place, one in extra]

    def _mistaken(self, mistakes: list[InitErrorDetails]) -> ValidationError:
        return ValidationError.from_exception_data(getattr(self.form, "__name__", "payload"), mistakes)

    def arguments(self, payload: Any, context: JobContext | None) -> dict[str, Any]:
        """Return the arguments with which the function is called for a payload."""
        if self.payload_parameter is not None:
            arguments = {self.payload_parameter: payload}
        else:
            arguments = {name: getattr(payload, name) for name in self.parameters.parameters}
        if self.context_parameter is not None:
            arguments[self.context_parameter] = context
        return arguments


def _misplaced(mistake: str, place: str | int, given: object) -> InitErrorDetails:
    return InitErrorDetails(type=mistake, loc=(place,), input=given)


def _is_whole(annotation: Any) -> bool:
    if annotation is dict or get_origin(annotation) is dict:
        return True
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def _refuse_method(function: object, parameters: Iterable[str], where: str) -> None:
    """Refuse methods and class methods, because a job has no object to call them on. Static methods are fine."""
    owner = getattr(function, "__qualname__", "").rpartition(".")[0]
    is_in_class = bool(owner) and not owner.endswith("<locals>")
    if isinstance(function, classmethod) or (is_in_class and next(iter(parameters), "") in ("self", "cls")):
        raise InvalidHandler(
            f"{where} is a method, and a job has no object to call it on. Make it a function of the module that "
            "takes an id and fetches the object."
        )


def _refuse_odd_kind(parameter: inspect.Parameter, where: str) -> None:
    if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
        raise InvalidHandler(
            f"{where} has the parameter {parameter}; a payload can only fill parameters that have a name."
        )


def _derived(function: Callable[..., Any], parameters: list[inspect.Parameter], where: str) -> type[BaseModel]:
    fields: dict[str, Any] = {}
    for one in parameters:
        annotation = Any if one.annotation is one.empty else one.annotation
        fields[one.name] = (annotation, ... if one.default is one.empty else one.default)
    title = "".join(word.capitalize() for word in function.__name__.split("_")) + "Payload"
    try:
        with warnings.catch_warnings():
            # A parameter may be called `json` or `copy`. It hides a method of the model, which does no harm here.
            warnings.simplefilter("ignore", UserWarning)
            model = create_model(title, __config__=ConfigDict(extra="forbid", protected_namespaces=()), **fields)
    except (NameError, TypeError, ValueError, PydanticUserError) as error:
        raise InvalidHandler(f"No payload can be derived from the signature of {where}: {error}") from error
    lost = sorted(set(fields) - set(model.model_fields))
    if lost:
        raise InvalidHandler(f"{where} has the parameter {lost[0]}; a payload cannot have a field of that name.")
    return model
