"""The port of turns: how long a job of a fair queue waits for others, and who has which share of a queue."""

from __future__ import annotations

from abc import ABC, abstractmethod

from jobqueue.records import JobRecord
from jobqueue.records.queue_options import QueueOptions
from jobqueue.records.turn import TurnPlace, TurnShare

#: The most jobs of one turn that are counted.
MOST_COUNTED = 1_000
#: The most turns that are looked at.
MOST_TURNS = 2_000


class Turns(ABC):
    """Reads the turns of fair queues.

    - The jobs of a fair queue that have the same priority take turns by their ``fair_key``. The least served turn goes
      first: the one whose served jobs, divided by its weight, are the fewest. A turn has the jobs of one value in the
      order of claims. Jobs without a value have one turn together.
    - A turn that had no due jobs, or whose limits were used up, begins level with the least served one.
    - No slot stays idle while a job may run. Between queues, jobs are taken in the order of claims: the fair queue's
      next jobs take the places of its first ones.
    - This holds for all workers together.
    """

    @abstractmethod
    def place_of(self, job: JobRecord, options: QueueOptions) -> TurnPlace:
        """Return which turns, and which jobs of its own turn, are due before a due job."""

    @abstractmethod
    def shares(self, queue: str, options: QueueOptions, most: int = 20) -> list[TurnShare]:
        """Return the values that have jobs or were served lately, those served most first, and then those that wait."""
