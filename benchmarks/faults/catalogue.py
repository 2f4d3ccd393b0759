"""The catalogue of faults: what can be tried, on which databases, and what it takes.

To add a fault, write one function in a module of ``benchmarks/faults/families`` and decorate it:

    @fault("T13", "sessions ended by the server, again and again", databases=POSTGRES)
    def sessions_end(lab: Laboratory) -> None:
        '''One line: what is injected, and what shall hold. It is what ``--list`` shows.'''
        lab.crew.start(2, processes=2, lease=lab.lease)
        lab.load.start(2, rate=20)
        while lab.goes_on():
            lab.pause(0.1, 0.3)
            ...  # inject one fault, and say so:
            lab.injected("pg_terminate_backend")

and name a new module in ``FAMILIES`` below. The function injects, for as long as ``lab.goes_on()``, and leaves nothing
broken behind (``try``/``finally``). After it the laboratory ends the load, replaces workers that died, waits until each
job has come to its end, stops the workers, and has the checker account for every job. So a function checks only what is
peculiar to its fault, with ``lab.expect(condition, "what was expected")``, and leaves figures in ``lab.findings``. What
can be told only after the drain goes into a function that is handed to ``lab.afterwards``.

``needs`` are functions of ``needs.py``; where one is not met the fault is reported as not run, never as passed.
``own_cluster`` gives Postgres a server of its own as ``lab.cluster``. A fault that wants another place still, a disk
that is small for one, brings its ``ground``: a context manager that is told the database, as ``place.ground`` is.

Workers and producers are started by ``lab.crew`` and ``lab.load``; these take a ``prefix`` (strace, ``env`` with a
LD_PRELOAD) and a ``place`` (the same database behind a proxy). What is to happen beside the fault, or in step with it,
runs by ``forking.beside`` and ``forking.in_step``. Each fault has its line in ``docs/explanation/faults.md``.
A fault that wants other kinds of jobs adds them to ``jobs.KINDS``. Every handler must return ``{"fence": ctx.fence}``
and write to the ledger by ``recorded(ctx)``: the checker reads from this who completed the job.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

from benchmarks.faults.needs import Need, own_postgres, processes_in_proc

if TYPE_CHECKING:
    from benchmarks.faults import place as places
    from benchmarks.faults.laboratory import Laboratory

FAMILIES = (
    "children",
    "clocks",
    "commands",
    "commit_points",
    "contention",
    "deploys",
    "disk",
    "handlers",
    "locks",
    "network",
    "processes",
    "races",
    "server",
    "sessions",
    "shutdown",
    "soaks",
    "stalls",
    "transactions",
    "wal",
)

BOTH = ("sqlite", "postgres")
SQLITE = ("sqlite",)
POSTGRES = ("postgres",)

Inject = Callable[["Laboratory"], None]
Ground = Callable[[str], AbstractContextManager["places.Ground"]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One fault: its number in the catalogue, what it is called, and the function that injects it."""

    id: str
    title: str
    inject: Inject
    databases: tuple[str, ...] = BOTH
    needs: tuple[Need, ...] = ()
    own_cluster: bool = False
    ground: Ground | None = None

    @property
    def about(self) -> str:
        """Say in one line what is injected and what shall hold."""
        return (inspect.getdoc(self.inject) or "").partition("\n")[0]

    def why_not(self, database: str) -> str | None:
        """Say why it cannot be tried here, if it cannot."""
        wanted = [processes_in_proc, *self.needs]
        if self.own_cluster and database == "postgres":
            wanted.append(own_postgres)
        return next((why for need in wanted if (why := need())), None)


_faults: dict[str, Fault] = {}


def fault(
    number: str,
    title: str,
    *,
    databases: tuple[str, ...] = BOTH,
    needs: tuple[Need, ...] = (),
    own_cluster: bool = False,
    ground: Ground | None = None,
) -> Callable[[Inject], Inject]:
    """Put a function that injects a fault into the catalogue; the numbers of several in one test end in a letter."""

    def add(inject: Inject) -> Inject:
        if number in _faults and _faults[number].inject.__qualname__ != inject.__qualname__:
            raise ValueError(f"There are two faults {number}.")
        _faults[number] = Fault(
            id=number,
            title=title,
            inject=inject,
            databases=databases,
            needs=needs,
            own_cluster=own_cluster,
            ground=ground,
        )
        return inject

    return add


@cache
def catalogue() -> dict[str, Fault]:
    """Return all faults, by their numbers."""
    for family in FAMILIES:
        import_module(f"benchmarks.faults.families.{family}")
    return dict(sorted(_faults.items()))
