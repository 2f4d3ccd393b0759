"""The process that posts events at a fixed rate, however slow the answers are, and repeats those without one.

What it is to do comes as a line of JSON. In the end each event that was accepted goes out as a line: its id, at which
try, and how many seconds after the moment it was due its answer had come.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from itertools import count
from threading import Lock, Thread

from jobqueue.clock import SYSTEM
from jobqueue.ids import new_id

#: Connections that are kept open; each posts one event after the other.
SENDERS = 32
TIMEOUT = 20.0
PAUSE = 0.1
#: One in so many conversations teaches something that no other does.
TEACHES = 10
PROSE = "The parcel of this customer has not come, and nobody at the depot knows where it is. " * 20


@dataclass(frozen=True)
class Load:
    """The rate and duration of a load, and its destination."""

    port: int
    rate: float
    seconds: float

    @property
    def events(self) -> int:
        """Return the number of events."""
        return int(self.rate * self.seconds)


class Senders:
    """Threads that share the events of a load."""

    def __init__(self, load: Load) -> None:
        self._load = load
        self._numbers: Iterator[int] = iter(range(load.events))
        self._lock = Lock()
        self._began = SYSTEM.monotonic() + PAUSE
        self._answers: list[dict[str, object]] = []

    def run(self) -> list[dict[str, object]]:
        """Post all events, and return the results."""
        threads = [Thread(target=self._send) for _ in range(SENDERS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if len(self._answers) < self._load.events:
            raise RuntimeError("not every event was accepted")
        return self._answers

    def _send(self) -> None:
        connection = HTTPConnection("127.0.0.1", self._load.port, timeout=TIMEOUT)
        while (number := self._next()) is not None:
            due = self._began + number / self._load.rate
            time.sleep(max(0.0, due - SYSTEM.monotonic()))
            event_id = new_id()
            tries = self._post(connection, _event(event_id, number))
            self._answers.append({"id": event_id, "tries": tries, "seconds": SYSTEM.monotonic() - due})
        connection.close()

    def _next(self) -> int | None:
        with self._lock:
            return next(self._numbers, None)

    def _post(self, connection: HTTPConnection, body: bytes) -> int:
        """Post an event until it is accepted, and return the number of tries. Repeated events are captured once."""
        for tries in count(1):
            try:
                connection.request("POST", "/capture/", body, {"Content-Type": "application/json"})
                response = connection.getresponse()
                response.read()
                if response.status in (200, 202):
                    return tries
                if response.status < 500:
                    raise RuntimeError(f"an event was refused with {response.status}")
            except (OSError, HTTPException):
                connection.close()
            time.sleep(PAUSE)
        raise AssertionError


def _event(event_id: str, number: int) -> bytes:
    """Return a conversation of two kilobytes with private data."""
    asked = (
        f"Write to customer{number}@example.org or call +49 30 55{number:06}, from 203.0.113.{number % 255}. {PROSE}"
    )
    lesson = f"We decided to send parcel {event_id} again, because it is lost."
    answered = "Have a nice day." if number % TEACHES else lesson
    said = [{"role": "user", "content": asked}, {"role": "assistant", "content": answered}]
    return json.dumps({"conversation_id": event_id, "source": "benchmark", "messages": said}).encode()


if __name__ == "__main__":
    for answer in Senders(Load(**json.loads(sys.stdin.readline()))).run():
        print(json.dumps(answer))
