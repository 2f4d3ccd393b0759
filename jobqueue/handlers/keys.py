"""Idempotency keys made of payload fields: the same work, the same key; hashed, so that a key tells nothing."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from pydantic_core import to_jsonable_python

_DIGITS = 32


def payload_key(prefix: str, values: Mapping[str, Any], nonce: str = "") -> str:
    """Hash values to ``prefix-<32 hexadecimal digits>``; the order of the values does not matter."""
    canonical = json.dumps(to_jsonable_python(dict(values)), sort_keys=True, separators=(",", ":"))
    digest = hashlib.sha256(f"{nonce}:{canonical}".encode()).hexdigest()
    return f"{prefix}-{digest[:_DIGITS]}"
