"""The signatures of webhooks, and their verification by receivers. Needs neither a database nor settings.

The form is that of the Standard Webhooks specification: HMAC-SHA256 over delivery id, timestamp and body. While a
secret is rotated, a delivery has two signatures, and either is sufficient.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import os
import re
import secrets
from collections.abc import Iterable, Mapping
from datetime import timedelta

from jobqueue.clock import SYSTEM

PREFIX = "whsec_"
REFERENCE = "env:"
SHORTEST_KEY = 24
TOLERANCE = timedelta(minutes=5)

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class InvalidSecret(ValueError):
    """A text is neither a secret nor a reference to one. The message does not quote it."""


class InvalidSignature(ValueError):
    """A request was not signed with one of the secrets, or is too old. Reject it."""


def new_secret() -> str:
    """Return a new secret."""
    return PREFIX + base64.b64encode(secrets.token_bytes(32)).decode()


def check_secret(secret: str) -> None:
    """Raise InvalidSecret for a text that is neither a secret nor a reference to one. The reference isn't resolved."""
    if secret.startswith(REFERENCE):
        if not _NAME.fullmatch(secret.removeprefix(REFERENCE)):
            raise InvalidSecret(f"{REFERENCE} must be followed by the name of an environment variable.")
        return
    _key(secret)


def key_of(secret: str) -> bytes:
    """Return the key of a secret, which is ``whsec_…``, or ``env:NAME`` for one in the environment.

    Raises InvalidSecret.
    """
    if secret.startswith(REFERENCE):
        name = secret.removeprefix(REFERENCE)
        if name not in os.environ:
            raise InvalidSecret(f"The environment variable {name}, which holds the secret, is not set here.")
        secret = os.environ[name]
    return _key(secret)


def _key(secret: str) -> bytes:
    try:
        key = base64.b64decode(secret.removeprefix(PREFIX), validate=True)
    except (binascii.Error, ValueError) as error:
        raise InvalidSecret(f"A secret must be {PREFIX} followed by base64.") from error
    if not secret.startswith(PREFIX) or len(key) < SHORTEST_KEY:
        raise InvalidSecret(f"A secret must be {PREFIX} followed by at least {SHORTEST_KEY} bytes in base64.")
    return key


def signature(secret: str, delivery_id: str, timestamp: int, body: bytes) -> str:
    """Return the signature of a delivery."""
    signed = f"{delivery_id}.{timestamp}.".encode() + body
    return "v1," + base64.b64encode(hmac.digest(key_of(secret), signed, hashlib.sha256)).decode()


def headers(secrets: Iterable[str], delivery_id: str, timestamp: int, body: bytes) -> dict[str, str]:
    """Return the headers that a receiver verifies."""
    return {
        "webhook-id": delivery_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": " ".join(signature(secret, delivery_id, timestamp, body) for secret in secrets),
    }


def verify(
    secrets: str | Iterable[str],
    headers: Mapping[str, str],
    body: bytes,
    *,
    tolerance: timedelta = TOLERANCE,
    now: float | None = None,
) -> str:
    """Verify a received request, and return its delivery id. Raise InvalidSignature if it isn't valid.

    The id is the same for each attempt. ``body`` is the raw body, not parsed data. A delivery may arrive twice:
    remember the ids for ``tolerance``, or make the processing idempotent. The case of header names doesn't matter.
    """
    given = {name.lower(): value for name, value in headers.items()}
    try:
        delivery_id, timestamp = given["webhook-id"], int(given["webhook-timestamp"])
        signatures = given["webhook-signature"].encode().split()
        delivery_id.encode()  # some servers pass invalid bytes on as surrogates
    except (KeyError, ValueError) as error:
        raise InvalidSignature("The headers of a webhook are missing or invalid.") from error
    # An int, because a number of 400 digits doesn't fit into a float.
    if abs(int(SYSTEM.now().timestamp() if now is None else now) - timestamp) > tolerance.total_seconds():
        raise InvalidSignature("The request is too old, or from the future.")
    for secret in [secrets] if isinstance(secrets, str) else secrets:
        expected = signature(secret, delivery_id, timestamp, body).encode()
        if any(hmac.compare_digest(expected, one) for one in signatures):
            return delivery_id
    raise InvalidSignature("No signature matches.")
