"""One HTTP exchange with a receiver: bounded in time and size, to a checked address, without redirects.

It uses ``http.client`` on a connection that is made here. Libraries that pool connections, follow redirects,
decompress, use proxies or resolve names again would have to be kept from each of these.
"""

from __future__ import annotations

import io
import socket
import ssl
from collections.abc import Iterable, Mapping
from contextlib import suppress
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException, HTTPResponse
from typing import Any, NamedTuple

from jobqueue.clock import SYSTEM
from jobqueue.contrib.webhooks.addresses import Resolve, Target, permitted, resolve

#: The most bytes around the text of an answer: headers, chunk sizes, trailers.
LONGEST_HEAD = 65_536


class Unreachable(Exception):
    """There was no answer. The text says why, without naming the host."""


class Answer(NamedTuple):
    """The answer of a receiver. ``retry_after`` is in seconds, if given."""

    status: int
    text: str
    retry_after: float | None = None


def post(
    target: Target,
    headers: Mapping[str, str],
    body: bytes,
    *,
    networks: Iterable[str],
    timeout: float,
    most: int,
    ask: Resolve = resolve,
) -> Answer:
    """Send a body and return the answer with at most ``most`` bytes of its text. Raise Refused or Unreachable.

    ``timeout`` limits the whole exchange, even if bytes arrive slowly. Redirects are answers like others.
    """
    until = SYSTEM.monotonic() + timeout
    try:
        addresses = permitted(target, networks, ask)
        with _connected(addresses, target, until) as plain, _secured(plain, target, until) as connection:
            return _exchange(_Channel(connection, until), target, headers, body, most)
    except TimeoutError as error:
        raise Unreachable(f"There was no answer within {timeout:g} s.") from error
    except (OSError, HTTPException, UnicodeError) as error:
        raise Unreachable(f"The exchange failed: {_reason_of(error)}.") from error


def _reason_of(error: Exception) -> str:
    """Describe an error without the host, which errors of TLS or of the resolver may quote."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the certificate is invalid ({error.verify_message.partition(',')[0]})"
    if isinstance(error, OSError) and error.strerror and not isinstance(error, ssl.SSLError):
        return error.strerror
    return type(error).__name__


def _connected(addresses: list[str], target: Target, until: float) -> socket.socket:
    """Connect to the first address that can be reached."""
    fault: OSError = ConnectionError(0, "the host has no address")
    for address in addresses:
        try:
            return socket.create_connection((address, target.port), timeout=_left(until))
        except OSError as error:
            fault = error
    raise fault


def _secured(plain: socket.socket, target: Target, until: float) -> socket.socket:
    """Wrap the connection in TLS. The server must prove to be the host of the URL, whatever its address."""
    if not target.secure:
        return plain
    plain.settimeout(_left(until))
    return ssl.create_default_context().wrap_socket(plain, server_hostname=target.host)


def _exchange(channel: _Channel, target: Target, headers: Mapping[str, str], body: bytes, most: int) -> Answer:
    connection = HTTPConnection(target.host, target.port)
    connection.sock = channel
    sent = {"Host": target.netloc, "Accept-Encoding": "identity", "Connection": "close", **headers}
    connection.request("POST", target.path, body, sent)
    response = _final(connection.getresponse())
    channel.allow(LONGEST_HEAD + most)
    return Answer(response.status, _text(response, most), _patience(response))


def _final(response: HTTPResponse) -> HTTPResponse:
    """Skip informational responses such as 103. ``http.client`` only skips 100."""
    while HTTPStatus.SWITCHING_PROTOCOLS < response.status < HTTPStatus.OK:
        response.headers = None  # type: ignore[assignment]  # begin() does nothing if they are set
        response.begin()
    return response


def _text(response: HTTPResponse, most: int) -> str:
    """Return the text, as far as it can be read. The status has decided, so errors in the text don't matter."""
    data = b""
    with suppress(OSError, HTTPException, ValueError, Unreachable):
        while len(data) < most and (part := response.read1(most - len(data))):
            data += part
    return data[:most].decode(errors="replace").replace("\0", "")


def _patience(response: HTTPResponse) -> float | None:
    """Parse Retry-After, which is seconds or a date."""
    text = (response.getheader("Retry-After") or "").strip()
    if text.isascii() and text.isdigit():
        return float(text[:9])
    with suppress(ValueError, TypeError, OverflowError):
        return max(0.0, parsedate_to_datetime(text).timestamp() - SYSTEM.now().timestamp())
    return None


def _left(until: float) -> float:
    left = until - SYSTEM.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


class _Channel:
    """A socket for ``http.client`` whose operations all share one deadline."""

    def __init__(self, connection: socket.socket, until: float) -> None:
        self._connection, self._until = connection, until
        self._reader = _Reader(connection, until)

    def allow(self, size: int) -> None:
        """Limit the bytes that may still be received."""
        self._reader.left = size

    def sendall(self, data: bytes) -> None:
        self._connection.settimeout(_left(self._until))
        self._connection.sendall(data)

    def makefile(self, *_: Any, **__: Any) -> io.BufferedReader:
        return io.BufferedReader(self._reader)

    def close(self) -> None:
        """Do nothing, because the owner of the connection closes it."""


class _Reader(io.RawIOBase):
    """Reads until the deadline or the size limit, which also bounds endless headers."""

    def __init__(self, connection: socket.socket, until: float) -> None:
        self._connection, self._until = connection, until
        self.left = LONGEST_HEAD

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self.left:
            raise Unreachable(f"There was no answer within {LONGEST_HEAD:,} bytes.")
        self._connection.settimeout(_left(self._until))
        count = self._connection.recv_into(buffer, min(len(buffer), self.left))
        self.left -= count
        return count
