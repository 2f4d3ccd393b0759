"""Whether webhooks would be sent to a URL, as far as this process can tell before a delivery.

Only the check at each delivery protects the network. This one tells an operator early that it will refuse.
"""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import ip_address
from queue import Empty, SimpleQueue
from threading import Thread

from jobqueue import conf
from jobqueue.contrib.webhooks.addresses import AddressRefused, Resolve, permitted, resolve, target_of

#: Seconds to wait for a name server, because somebody waits for the page.
PATIENCE = 2.0


def refusal(url: str) -> str:
    """Return why a URL is refused that is wrong in itself, has a literal address, or the name of this machine."""
    try:
        host = target_of(url).host
    except AddressRefused as error:
        return str(error)
    return _refusal(url, resolve) if _is_literal(host) or host.rstrip(".").lower() == "localhost" else ""


def warning(url: str, ask: Resolve = resolve) -> str:
    """Return why deliveries to a URL would be refused now. A name that can't be resolved in time gets no warning."""
    told: SimpleQueue[str] = SimpleQueue()
    Thread(target=lambda: told.put(_refusal(url, ask)), daemon=True, name="jobqueue-webhook-name").start()
    try:
        return told.get(timeout=PATIENCE)
    except Empty:
        return ""


def _refusal(url: str, ask: Resolve) -> str:
    networks: Iterable[str] = conf.get("WEBHOOK_NETWORKS")
    try:
        permitted(target_of(url), networks, ask)
    except AddressRefused as error:
        return str(error)
    except (OSError, UnicodeError):  # the name server doesn't know the name, or can't be reached
        return ""
    return ""


def _is_literal(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
