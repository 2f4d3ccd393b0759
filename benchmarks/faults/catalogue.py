"""The catalogue of faults, with the databases they run on and what they need.

To add a fault, write one function in a module of ``benchmarks/faults/families`` and decorate it:

    @fault("T13", "sessions ended by the server, again and again", databases=POSTGRES)
    def sessions_end(lab: Laboratory) -> None:
        '''One line, which ``--list`` shows: what is injected, and what must hold.'''
        lab.crew.start(2, processes=2, lease=lab.lease)
        lab.load.start(2, rate=20)
        while lab.goes_on():
            lab.pause(0.1, 0.3)
            ...  # inject one fault, and record it:
            lab.injected("pg_terminate_backend")

and add a new module to ``FAMILIES`` below. The function injects as long as ``lab.goes_on()``, and repairs what it broke
(``try``/``finally``). Afterwards the laboratory ends the load, replaces dead workers, waits until each job has ended,
stops the workers, and lets the checker account for every job. The function only checks what is specific to its fault,
with ``lab.expect(condition, "what was expected")``, and puts figures into ``lab.findings``. Pass checks that must run
after the drain to ``lab.afterwards``.

``needs`` are functions of ``needs.py``. If one isn't met, the fault is reported as not run, never as passed.
``own_cluster`` starts a separate Postgres server, ``lab.cluster``. A fault that needs another place, such as a small
disk, has its own ``ground``: a context manager that takes the database, like ``place.ground``.

``lab.crew`` and ``lab.load`` start workers and producers. They take a ``prefix`` (strace, ``env`` with LD_PRELOAD) and
a ``place`` (the same database behind a proxy). ``forking.beside`` and ``forking.in_step`` run functions beside a fault.
Each fault has a line in ``docs/explanation/faults.md``. A fault that needs other kinds of jobs adds them to
``jobs.KINDS``. Every handler must return ``{"fence": ctx.fence}`` and write to the ledger with ``recorded(ctx)``: the
checker reads there which attempt completed the job.
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
    """A fault: its number in the catalogue, its title, and the function that injects it."""

    id: str
    title: str
    inject: Inject
    databases: tuple[str, ...] = BOTH
    needs: tuple[Need, ...] = ()
    own_cluster: bool = False
    ground: Ground | None = None

    @property
    def about(self) -> str:
        """Return what is injected and what must hold, in one line."""
        return (inspect.getdoc(self.inject) or "").partition("\n")[0]

    def why_not(self, database: str) -> str | None:
        """Return why it can't be tried here, if it can't."""
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
    """Add a function to the catalogue. Several faults of one test have numbers that end in a letter."""

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
    """Return all faults by number."""
    for family in FAMILIES:
        import_module(f"benchmarks.faults.families.{family}")
    return dict(sorted(_faults.items()))
