"""Where a webhook may go: which URLs are accepted, and which of a host's addresses are connected to.

A name is resolved once, and the connection goes to an address that was checked. So a name server that answers
differently the next time changes nothing.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterable, Iterator
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import NamedTuple
from urllib.parse import urlsplit

PORTS = {"https": 443, "http": 80}
LONGEST_URL = 2_000
_TRANSLATED = (ip_network("64:ff9b::/96"), ip_network("::/96"))
#: All that is given out to anybody. Whether the rest is global differs between releases of Python.
_GIVEN_OUT = (ip_network("0.0.0.0/0"), ip_network("2000::/3"), ip_network("64:ff9b::/96"))

Address = IPv4Address | IPv6Address
#: From a host and a port to addresses, as text.
Resolve = Callable[[str, int], Iterable[str]]


class Refused(Exception):
    """A webhook must not go there."""


class Target(NamedTuple):
    """A URL, taken apart."""

    secure: bool
    host: str
    port: int
    path: str
    netloc: str


def target_of(url: str) -> Target:
    """Take a URL apart; raise Refused for one that no webhook is sent to, whatever its address."""
    if len(url) > LONGEST_URL or not url.isascii() or not url.isprintable() or " " in url or "\\" in url:
        raise Refused("The URL must be printable ASCII without spaces and backslashes; write a name as punycode.")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise Refused("The URL cannot be read.") from error
    if parts.scheme not in PORTS or not parts.hostname:
        raise Refused("The URL must begin with https:// or http:// and name a host.")
    if parts.username is not None or parts.password is not None:
        raise Refused("The URL must not carry a user or a password.")
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    usual = PORTS[parts.scheme]
    return Target(parts.scheme == "https", parts.hostname, usual if port is None else port, path, parts.netloc)


def resolve(host: str, port: int) -> list[str]:
    """Ask the system for the addresses of a host."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(one[4][0]) for one in found))


def permitted(target: Target, networks: Iterable[str], ask: Resolve = resolve) -> list[str]:
    """Resolve a host, once, and return the addresses that may be connected to; raise Refused if none may."""
    own = [ip_network(network) for network in networks]
    addresses = list(ask(target.host, target.port))
    allowed = [one for one in addresses if _is_allowed(one, own, secure=target.secure)]
    if addresses and not allowed:
        raise Refused(
            "The host has no address that webhooks may go to: private ones, and all of them without TLS, only where "
            "JOBQUEUE['WEBHOOK_NETWORKS'] says so."
        )
    return allowed


def _is_allowed(text: str, own: Iterable[IPv4Network | IPv6Network], *, secure: bool) -> bool:
    try:
        address = ip_address(text)
    except ValueError:
        return False
    meant = [*_meant(address)]
    if any(one in network for network in own for one in (address, meant[-1])):
        return True
    return secure and all(map(_is_public, meant))


def _meant(address: Address) -> Iterator[Address]:
    """Yield an address and, where an older one is written into it, that one."""
    yield address
    if isinstance(address, IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour or (address.teredo[1] if address.teredo else None)
        if inner is None and any(address in network for network in _TRANSLATED):
            inner = IPv4Address(int(address) & 0xFFFFFFFF)
        if inner is not None:
            yield inner


def _is_public(address: Address) -> bool:
    mapped = isinstance(address, IPv6Address) and address.ipv4_mapped is not None
    is_given_out = any(address in network for network in _GIVEN_OUT)
    return mapped or (is_given_out and address.is_global and not address.is_multicast)
