"""What the dashboard shows, read at one moment: what waits and who works now, and what happened in a window of time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple
from urllib.parse import urlencode

from django.http import QueryDict

from jobqueue.admin.search.results import CAP
from jobqueue.backends import current
from jobqueue.handlers.options import NAME_LENGTH
from jobqueue.observe.health import Reading
from jobqueue.observe.metrics import WINDOWS, Figures, Window, depths, figures
from jobqueue.records import Depth, Filter, PauseRecord, Scope, WorkerRecord
from jobqueue.records.metric import MOST_GROUPS
from jobqueue.relay.outbox import waiting_in
from jobqueue.states import JobStatus


class Asked(NamedTuple):
    """What an address asks for: how far back, and of which queue and type; an empty name is all of them."""

    window: Window
    queue: str = ""
    type: str = ""

    @classmethod
    def of(cls, query: QueryDict) -> Asked:
        """Read what an address asks for; of a window that does not exist it gets the first."""
        window = WINDOWS.get(query.get("window", ""), next(iter(WINDOWS.values())))
        return cls(window, _name(query.get("queue", "")), _name(query.get("type", "")))

    @property
    def names(self) -> dict[str, str]:
        """The names that were asked for."""
        return {name: value for name, value in (("type", self.type), ("queue", self.queue)) if value}

    @property
    def query(self) -> str:
        """The same as an address asks for it."""
        return urlencode({"window": self.window.name, **self.names})


def _name(given: str) -> str:
    # Postgres has no text with a NUL, and no name has one: with another sign in its place it finds what it should.
    return given.strip()[:NAME_LENGTH].replace("\0", "\N{REPLACEMENT CHARACTER}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """What was read; the depths and the workers are those that what was asked for has to do with."""

    asked: Asked
    now: datetime
    depths: Sequence[Depth]
    groups_left_out: bool
    dead_letters: int
    workers: Sequence[WorkerRecord]
    figures: Figures
    health: Reading

    @property
    def alive(self) -> list[WorkerRecord]:
        """The workers heard of lately."""
        return [one for one in self.workers if one.is_alive(self.now)]

    @property
    def capped(self) -> bool:
        """Return whether more is queued than was counted."""
        return self.groups_left_out or any(one.capped for one in self.depths)

    @property
    def oldest(self) -> timedelta | None:
        """How long the oldest due job has waited."""
        moments = [one.oldest_due_at for one in self.depths if one.oldest_due_at]
        return max(self.now - min(moments), timedelta(0)) if moments else None


def look(asked: Asked) -> Snapshot:
    """Read everything; with as many questions however much there is."""
    backend = current()
    every, now, workers = depths(), backend.now(), backend.workers.all()
    in_part = len(every) >= MOST_GROUPS
    wanted = [one for one in every if asked.queue in ("", one.queue) and asked.type in ("", one.type)]
    return Snapshot(
        asked=asked,
        now=now,
        depths=wanted,
        groups_left_out=in_part,
        dead_letters=backend.jobs.count(_dead_letters(asked), CAP + 1),
        workers=[one for one in workers if one.serves(asked.queue or None, asked.type or None)],
        figures=figures(asked.window, asked.queue, asked.type),
        # All workers: that none of them serves what was asked for does not mean that none is up.
        health=Reading(
            now=now,
            depths=wanted,
            pauses=[one for one in backend.operator.pauses() if _concerns(one, asked)],
            workers=workers,
            in_part=in_part,
            outbox=waiting_in(backend),
        ),
    )


def _dead_letters(asked: Asked) -> Filter:
    queues, types = frozenset({asked.queue} - {""}), frozenset({asked.type} - {""})
    return Filter(statuses=frozenset({JobStatus.DEAD_LETTER}), queues=queues, types=types)


def _concerns(pause: PauseRecord, asked: Asked) -> bool:
    return {Scope.QUEUE: asked.queue, Scope.TYPE: asked.type}[pause.scope] in ("", pause.name)
