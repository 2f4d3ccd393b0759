"""The process that waits for wake-ups, and the bare way to send one: a datagram, or NOTIFY."""

from __future__ import annotations

import json
import select
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from benchmarks.databases import Place
from jobqueue import backends
from jobqueue.clock import SYSTEM

try:
    import psycopg
except ImportError:
    psycopg = None  # type: ignore[assignment]

#: How long a wait lasts before the process looks whether it is still wanted.
_TURN = 0.5
_CHANNEL = "bench"

Hear = Callable[[float], bool]


@contextmanager
def bare_sender(place: Place) -> Iterator[Callable[[], object]]:
    """Yield the function that wakes the bare listener."""
    if place.vendor == "postgres":
        with psycopg.connect(place.address, autocommit=True) as connection:
            yield lambda: connection.execute(f"NOTIFY {_CHANNEL}")
    else:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            address = _address(place)
            yield lambda: sender.sendto(b"", address)


@contextmanager
def _bare_listener(place: Place) -> Iterator[Hear]:
    if place.vendor == "postgres":
        with psycopg.connect(place.address, autocommit=True) as connection:
            connection.execute(f"LISTEN {_CHANNEL}")
            yield lambda timeout: any(True for _ in connection.notifies(timeout=timeout, stop_after=1))
    else:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
            receiver.bind(_address(place))
            yield lambda timeout: _received(receiver, timeout)


def _received(receiver: socket.socket, timeout: float) -> bool:
    receiver.settimeout(timeout)
    with suppress(TimeoutError):
        receiver.recv(1)
        return True
    return False


def _address(place: Place) -> str:
    return str(Path(place.runtime) / "bare")


@contextmanager
def _our_listener(place: Place) -> Iterator[Hear]:
    place.configure()
    listener = backends.current().listen()
    try:
        yield listener.hear
    finally:
        listener.close()


def main() -> None:
    """Read the place from standard input, then write a timestamp for each wake-up until the input ends."""
    place = Place(**json.loads(sys.stdin.readline()))
    make = _our_listener if sys.argv[1] == "ours" else _bare_listener
    with make(place) as hear:
        print("ready", flush=True)
        while not select.select([sys.stdin], [], [], 0)[0]:
            if hear(_TURN):
                print(SYSTEM.monotonic(), flush=True)


if __name__ == "__main__":
    main()
