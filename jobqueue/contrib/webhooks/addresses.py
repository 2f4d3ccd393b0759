"""The URLs and addresses that webhooks may reach.

A name is resolved once, and the connection uses an address that was checked. A name server that answers differently the
next time therefore changes nothing.
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
#: All ranges that are allocated. Whether other addresses are global differs between releases of Python.
_GIVEN_OUT = (ip_network("0.0.0.0/0"), ip_network("2000::/3"), ip_network("64:ff9b::/96"))

Address = IPv4Address | IPv6Address
#: A function from a host and a port to addresses, as text.
Resolve = Callable[[str, int], Iterable[str]]


class AddressRefused(Exception):
    """A webhook must not be sent to this URL or address."""


class Target(NamedTuple):
    """The parts of a URL."""

    secure: bool
    host: str
    port: int
    path: str
    netloc: str


def target_of(url: str) -> Target:
    """Parse a URL. Raise AddressRefused for one that no webhook may be sent to, whatever its address."""
    if len(url) > LONGEST_URL or not url.isascii() or not url.isprintable() or " " in url or "\\" in url:
        raise AddressRefused(
            "The URL must be printable ASCII without spaces and backslashes. Write other names in punycode."
        )
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise AddressRefused("The URL is invalid.") from error
    if parts.scheme not in PORTS or not parts.hostname:
        raise AddressRefused("The URL must begin with https:// or http:// and name a host.")
    if parts.username is not None or parts.password is not None:
        raise AddressRefused("The URL must not carry a user or a password.")
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    usual = PORTS[parts.scheme]
    return Target(parts.scheme == "https", parts.hostname, usual if port is None else port, path, parts.netloc)


def resolve(host: str, port: int) -> list[str]:
    """Return the addresses of a host."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(one[4][0]) for one in found))


def permitted(target: Target, networks: Iterable[str], ask: Resolve = resolve) -> list[str]:
    """Resolve a host once, and return the addresses that may be used. Raise AddressRefused if there is none."""
    own = [ip_network(network) for network in networks]
    addresses = list(ask(target.host, target.port))
    allowed = [one for one in addresses if _is_allowed(one, own, secure=target.secure)]
    if addresses and not allowed:
        raise AddressRefused(
            "The host has no address that webhooks may be sent to. Private addresses, and any address without TLS, "
            "must be in JOBQUEUE['WEBHOOK_NETWORKS']."
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
    """Yield an address, and the IPv4 address embedded in it, if there is one."""
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
