"""The port to a content-addressed store, and the address of a content."""

from __future__ import annotations

import base64
import hashlib
from typing import Protocol

#: CIDv1, raw, SHA-256 with 32 bytes.
_HEAD = bytes([0x01, 0x55, 0x12, 0x20])
#: Above this, ``ipfs add`` splits a file, and the address is that of the list of pieces.
MAX_BYTES = 262_144


def cid_of(content: bytes) -> str:
    """Return the address of a small content, as ``ipfs add --cid-version=1`` would."""
    if len(content) > MAX_BYTES:
        raise ValueError(f"The content takes {len(content):,} bytes; up to {MAX_BYTES:,} have an address of this kind.")
    multihash = _HEAD + hashlib.sha256(content).digest()
    return "b" + base64.b32encode(multihash).decode().lower().rstrip("=")


class Store(Protocol):
    """Keeps contents under their addresses. Raises Busy, Refused or another PortError."""

    def has(self, cid: str) -> bool:
        """Return whether a content is stored."""
        ...

    def put(self, content: bytes) -> str:
        """Store a content, and return its address."""
        ...
