"""The abilities of an adapter, and its protocol: a line of JSON for each question and answer."""

from __future__ import annotations

import json
import os
import select
import sys
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from benchmarks.peers.adapters.tally import now

#: How long a stamp may take to come.
PATIENCE = 30.0
BULK = 1_000
WARM = 3
PAUSE = 0.02
GOLDEN = (5**0.5 - 1) / 2


class NotOffered(Exception):
    """The peer has no such call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a contestant keeps its jobs: `benchmarks.databases.Place`, for processes that have no Django."""

    vendor: str
    database: dict[str, Any]
    address: str
    runtime: str


class Adapter(ABC):
    """One queue, used as its documentation says; ``job`` names a handler: resize_image or nap."""

    def __init__(self, place: Place, options: dict[str, Any]) -> None:
        self.place = place
        self.options = options

    @abstractmethod
    def prepare(self) -> None:
        """Make what the queue needs in an empty store."""

    @abstractmethod
    def enqueue(self, job: str, payload: dict[str, Any]) -> None:
        """Enqueue one job, stored for good when this returns."""

    def enqueue_singly(self, job: str, payload: dict[str, Any], count: int) -> None:
        """Enqueue one after the other."""
        for _ in range(count):
            self.enqueue(job, payload)

    def enqueue_many(self, job: str, payloads: list[dict[str, Any]]) -> None:
        """Enqueue many by one call."""
        raise NotOffered

    def analyse(self) -> None:  # noqa: B027 - where no planner is, nothing is to be done
        """Give the planner its statistics."""

    @abstractmethod
    def left(self) -> int:
        """Count what the store reports as queued or running."""

    @abstractmethod
    def work(self) -> None:
        """Be one worker process until told to stop."""


class Desk:
    """Answers the questions of a run about one adapter."""

    def __init__(self, adapter: Adapter) -> None:
        self._adapter = adapter

    def prepare(self) -> None:
        """Make what the queue needs."""
        self._adapter.prepare()

    def fill_singly(self, job: str, payload: dict[str, Any], count: int) -> float:
        """Enqueue one by one; return how long it took."""
        began = now()
        self._adapter.enqueue_singly(job, payload, count)
        return now() - began

    def fill_in_bulk(self, job: str, payload: dict[str, Any], count: int) -> float | None:
        """Enqueue by the thousand; return how long it took, or None where there is no such call."""
        began = now()
        try:
            for start in range(0, count, BULK):
                self._adapter.enqueue_many(job, [payload] * min(BULK, count - start))
        except NotOffered:
            return None
        return now() - began

    def analyse(self) -> None:
        """Give the planner its statistics."""
        self._adapter.analyse()

    def left(self) -> int:
        """Count what is queued or running."""
        return self._adapter.left()

    def pickups(self, path: str, count: int, seconds: float, spread: float) -> list[float]:
        """Take, one at a time, how long it is from a commit to the handler's first line; end early when time is up."""
        pipe = os.open(path, os.O_RDWR | os.O_NONBLOCK)  # for writing too, so that it never ends
        end = now() + seconds
        durations: list[float] = []
        try:
            while len(durations) < WARM + count and (now() < end or len(durations) <= WARM):
                # Past the looks that follow a wake-up, and then at any moment between a worker's looks.
                time.sleep(PAUSE + len(durations) * GOLDEN % 1 * spread)
                durations.append(self._pickup(path, pipe))
        finally:
            os.close(pipe)
        return durations[WARM:]

    def _pickup(self, path: str, pipe: int) -> float:
        self._adapter.enqueue("stamp", {"path": path})
        committed = now()
        if not select.select([pipe], [], [], PATIENCE)[0]:
            raise RuntimeError(f"a job was not picked up within {PATIENCE:g} seconds")
        return float(os.read(pipe, 64)) - committed


def serve(adapter: Adapter) -> None:
    """Answer what standard input asks, until it ends. Whatever the peer prints goes to standard error."""
    desk = Desk(adapter)
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    for line in sys.stdin:
        question = json.loads(line)
        try:
            answer = {"answer": getattr(desk, question["verb"])(**question["about"])}
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()
