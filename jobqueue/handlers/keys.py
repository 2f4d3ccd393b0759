"""Idempotency keys made of payload fields. They are hashes, so a key reveals nothing."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from pydantic import BaseModel, TypeAdapter, ValidationError, create_model, field_validator
from pydantic_core import to_jsonable_python

from jobqueue.errors import InvalidOption
from jobqueue.policy.nearest import did_you_mean

_DIGITS = 32


def payload_key(prefix: str, values: Mapping[str, Any], nonce: str = "") -> str:
    """Return ``prefix-<32 hexadecimal digits>``. The order of the values doesn't matter."""
    canonical = _canonical(dict(values))
    digest = hashlib.sha256(f"{nonce}:{canonical}".encode()).hexdigest()
    return f"{prefix}-{digest[:_DIGITS]}"


def typed(form: Any, values: Mapping[str, Any]) -> dict[str, Any]:
    """Validate values as fields of a payload, so that equal payloads have equal keys: "7" is 7.

    Each field is validated by itself, because a key may leave out fields that a payload needs. Raises pydantic's
    ValidationError for a value that no payload can have, and InvalidOption for an unknown field.
    """
    if not (isinstance(form, type) and issubclass(form, BaseModel)):
        return dict(_of_dict(form).validate_python(dict(values)))
    names = {field.alias or name: name for name, field in form.model_fields.items()}
    names |= {name: name for name in form.model_fields}
    for given in values:
        if given not in names and form.model_config.get("extra") != "allow":
            raise InvalidOption(given, f"is not a field of the payload. {did_you_mean(given, names)}")
    return {
        names.get(given, given): _field(form, names[given], value) if given in names else value
        for given, value in values.items()
    }


def _field(form: type[BaseModel], name: str, value: Any) -> Any:
    try:
        read = _alone(form, name).model_validate({name: value})
    except ValidationError:
        raise
    except Exception:  # a validator that needs other fields
        read = _alone(form, name, validated=False).model_validate({name: value})
    return getattr(read, name)


@lru_cache(maxsize=1_000)
def _alone(form: type[BaseModel], name: str, *, validated: bool = True) -> type[BaseModel]:
    """Return a model of one field, with the validators that the payload's model has for it."""
    field, found = form.model_fields[name], form.__pydantic_decorators__.field_validators.items()
    validators: dict[str, Any] = {
        key: field_validator(name, mode=one.info.mode)(staticmethod(one.func))
        for key, one in found
        if validated and {name, "*"} & set(one.info.fields)
    }
    fields: dict[str, Any] = {name: (field.annotation, field)}
    config: Any = {**form.model_config, "populate_by_name": True, "protected_namespaces": ()}
    return create_model(form.__name__, __config__=config, __validators__=validators, **fields)


@lru_cache(maxsize=1_000)
def _of_dict(form: Any) -> TypeAdapter[Any]:
    return TypeAdapter(form)


def _canonical(value: Any) -> str:
    """Return a value as JSON that is the same in every process: sets and dicts are sorted."""
    if isinstance(value, BaseModel):
        return _canonical(value.model_dump())
    if isinstance(value, (set, frozenset)):
        return f"[{','.join(sorted(map(_canonical, value)))}]"
    if isinstance(value, Mapping):
        return "{" + ",".join(sorted(f"{_canonical(str(key))}:{_canonical(one)}" for key, one in value.items())) + "}"
    if isinstance(value, (list, tuple)):
        return f"[{','.join(map(_canonical, value))}]"
    return json.dumps(to_jsonable_python(value), sort_keys=True, separators=(",", ":"))
