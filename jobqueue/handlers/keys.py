"""Idempotency keys made of payload fields: the same work, the same key; hashed, so that a key tells nothing."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel
from pydantic_core import to_jsonable_python

_DIGITS = 32


def payload_key(prefix: str, values: Mapping[str, Any], nonce: str = "") -> str:
    """Hash values to ``prefix-<32 hexadecimal digits>``; the order of the values does not matter."""
    canonical = _canonical(dict(values))
    digest = hashlib.sha256(f"{nonce}:{canonical}".encode()).hexdigest()
    return f"{prefix}-{digest[:_DIGITS]}"


def _canonical(value: Any) -> str:
    """Write a value as JSON, the same in every process: a set has no order of its own."""
    if isinstance(value, BaseModel):
        return _canonical(value.model_dump())
    if isinstance(value, (set, frozenset)):
        return f"[{','.join(sorted(map(_canonical, value)))}]"
    if isinstance(value, Mapping):
        return "{" + ",".join(sorted(f"{_canonical(str(key))}:{_canonical(one)}" for key, one in value.items())) + "}"
    if isinstance(value, (list, tuple)):
        return f"[{','.join(map(_canonical, value))}]"
    return json.dumps(to_jsonable_python(value), sort_keys=True, separators=(",", ":"))
