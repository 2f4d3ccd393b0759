"""Floors that rise at once, and behind which everything is looked through before each claim."""

from __future__ import annotations

from contextlib import contextmanager

import psycopg

from jobqueue.backends.postgresql import PostgresBackend
from jobqueue.backends.postgresql.floors import floor, floors, looks
from jobqueue.backends.postgresql.floors.floor import Floor
from jobqueue.backends.postgresql.floors.looks import Looks
from jobqueue.clock import SYSTEM
from tests.waking.test_silence import address


@contextmanager
def snapshot():
    """Hold an old snapshot, as a backup does."""
    with psycopg.connect(address()) as holder:
        holder.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        holder.execute("SELECT count(*) FROM job_queue").fetchall()
        yield holder
        holder.rollback()


def raise_at_once(monkeypatch, most_sections=1):
    """Have floors rise with the second claim and never fall, and sections be halved until there are so many."""

    def halved(self, section):
        return given(self, section) if len(self.sections) < most_sections else [section]

    given = Floor._halved
    monkeypatch.setattr(Floor, "_halved", halved)
    monkeypatch.setattr(floor, "SLOW", -1.0)
    monkeypatch.setattr(floor, "LAG", 0.0)
    if most_sections > 1:
        for module in (floor, floors):
            monkeypatch.setattr(module, "LONGEST_LOOK", -1.0)


def look_through_all(monkeypatch):
    """Look through everything behind the floors before each claim and each sweep."""

    def look(self, statement, given=None):
        began = SYSTEM.monotonic()
        while True:
            ranges = self.floors.next_looks()
            values = looks.range_values([looks._NOWHERE, *(one.range for one in ranges)])
            self._noted(ranges, self._session.run(statement, {**(given or {}), **values}))
            if all(section.looked_at >= began for section in sections(self.floors)):
                return

    def turn(self, owner, settlements, request):
        self._look()
        return given_turn(self, owner, settlements, request)

    def sweep(self, judge, limit=500):
        self._look()
        return given_sweep(self, judge, limit)

    given_turn, given_sweep = PostgresBackend.turn, PostgresBackend.sweep
    monkeypatch.setattr(Looks, "look", look)
    monkeypatch.setattr(PostgresBackend, "turn", turn)
    monkeypatch.setattr(PostgresBackend, "sweep", sweep)


def sections(several):
    """Return the sections behind some floors."""
    return [section for one in several._floors.values() for section in one.sections]
