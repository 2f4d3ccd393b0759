"""Private keys by reference. A job names the place of a key, and only the chain's port reads it."""

from __future__ import annotations

import os
import re
import secrets
from contextlib import suppress
from pathlib import Path

from django.conf import settings

from example_project.capture.ports.errors import Refused

_REFERENCE = re.compile(r"(?P<kind>env|local):(?P<name>[A-Za-z0-9_]{1,64})")


def private_key(reference: str) -> bytes:
    """Return the 32 bytes that ``env:NAME`` or ``local:NAME`` refers to. Raises Refused, and never quotes a key.

    A local key is created at its first use, in a file of the network's folder that only its owner may read.
    """
    found = _REFERENCE.fullmatch(reference)
    if not found:
        raise Refused("A key's reference is env:NAME or local:NAME.")
    name = found["name"]
    text = _of_environment(name) if found["kind"] == "env" else _of_folder(settings.CAPTURE["KEYS"], name)
    try:
        key = bytes.fromhex(text.strip().removeprefix("0x"))
    except ValueError:
        key = b""
    if len(key) != 32:
        raise Refused(f"What {reference} refers to is not a key of 64 hexadecimal digits.")
    return key


def _of_environment(name: str) -> str:
    if name not in os.environ:
        raise Refused(f"The environment variable {name}, which is to hold the key, is not set.")
    return os.environ[name]


def _of_folder(folder: Path, name: str) -> str:
    path = folder / f"{name}.key"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        fresh = folder / f".{name}.{secrets.token_hex(8)}"
        fresh.touch(mode=0o600, exist_ok=False)
        fresh.write_text(secrets.token_hex(32), encoding="ascii")
        with suppress(FileExistsError):  # another process was faster, and its key counts
            path.hardlink_to(fresh)
        fresh.unlink()
    return path.read_text(encoding="ascii")


def api_key(reference: str) -> str:
    """Return the API key that ``env:NAME`` refers to. Raises Refused."""
    found = _REFERENCE.fullmatch(reference)
    if not found or found["kind"] != "env":
        raise Refused("The reference of an API's key is env:NAME.")
    return _of_environment(found["name"])
