"""The rounds of the long run: surfaces read forged rows, workers drain them, and surfaces change the rest."""

from __future__ import annotations

import argparse
import secrets
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from subprocess import TimeoutExpired

from django.conf import settings
from django.contrib.auth.models import User
from django.db import connections
from django.test import Client
from django.test.utils import override_settings, setup_databases, setup_test_environment, teardown_databases

from jobqueue.clock import SYSTEM
from tests.attacks import forging
from tests.attacks.drains import LIMIT, Drain, Forgery, drain, forge, put_ordinary, trouble_with
from tests.attacks.hostile import Vandal, vandal
from tests.attacks.isolated import Result
from tests.attacks.relays import relay_all
from tests.attacks.surfaces import found_in, troubles
from tests.worker.harness import WorkerProcess

ALIASES = {"sqlite": ("default",), "postgres": ("postgres",), "both": ("default", "postgres")}
#: How often a round has real processes, and how often a relay.
PROCESSES, RELAYS = 0.05, 0.15
_LONGEST_TOLD = 400


@dataclass
class Tally:
    """What came of the rounds so far."""

    counts: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)

    def add(self, what: str, said: str) -> None:
        """Count a failure by its kind, and keep it."""
        kind = "hangs" if "hangs:" in said or "no answer after" in said else "tracebacks"
        self.counts[kind] += "are left" not in said or "raised" in said or "Error" in said
        self.counts["starved neighbours"] += "ordinary jobs are left" in said
        self.failures.append(f"{what}: {said}")


def run(given: argparse.Namespace) -> int:
    """Go round until the time is up; print what was found, and return 1 if anything was."""
    seed = secrets.randbelow(10**9) if given.seed is None else given.seed
    tally, began, number = Tally(), SYSTEM.monotonic(), 0
    aliases = [alias for alias in ALIASES[given.database] if alias in connections]
    with _databases(), tempfile.TemporaryDirectory() as folder:
        while SYSTEM.monotonic() < began + given.minutes * 60 and number != given.rounds:
            try:
                _round(seed + number, aliases, tally, Path(folder), relays=not given.skip_relay)
            except KeyboardInterrupt:
                break
            number += 1
    return _summed_up(tally, number, SYSTEM.monotonic() - began)


@contextmanager
def _databases() -> Iterator[None]:
    setup_test_environment()
    made = setup_databases(verbosity=0, interactive=False)
    try:
        yield
    finally:
        connections.close_all()
        teardown_databases(made, verbosity=0)
        shutil.rmtree(settings.PRIVATE, ignore_errors=True)


def _round(seed: int, aliases: list[str], tally: Tally, folder: Path, *, relays: bool) -> None:
    chance, began = Random(seed), SYSTEM.monotonic()
    alias = chance.choice(aliases)
    singles = forging.every_single()
    rows = [forging.single(*singles[seed // 2 % len(singles)])] if seed % 2 == 0 else forging.some(chance)
    with override_settings(JOBQUEUE={"DATABASE": alias}), vandal(alias) as foreign:
        foreign.clear()
        stored, _later = forge(foreign, rows)
        tally.counts["rows"] += len(stored)
        tally.counts["refused by the database"] += len(rows) - len(stored)
        found = list(_met(foreign, alias, stored, chance, folder)) if stored else []
        foreign.clear()
    if relays and len(connections.settings) > 1 and stored and chance.random() < RELAYS:
        found += _relayed(alias, rows)
    names = "; ".join(f"{one.table}.{one.name}{one.state and f' ({one.state})'}" for one in rows)
    verdict = f"{len(found)} FAILED" if found else "ok" if stored else "refused"
    print(f"seed {seed}  {alias}  {verdict}  {SYSTEM.monotonic() - began:.1f} s  {names}", flush=True)  # noqa: T201
    for said in found:
        told = f"--seed {seed} --rounds 1 --database {_word(aliases)}  {names}  {_told(rows)}"
        tally.add(told, said)
        print(f"    {said}", flush=True)  # noqa: T201


def _word(aliases: list[str]) -> str:
    return next(word for word, names in ALIASES.items() if list(names) == aliases)


def _told(rows: list[Forgery]) -> str:
    return "; ".join(repr(one.row)[:_LONGEST_TOLD] for one in rows)


def _met(foreign: Vandal, alias: str, stored: dict[object, Forgery], chance: Random, folder: Path) -> Iterator[str]:
    """Have everything meet the rows; say what went wrong."""
    visitor = _sign_in()
    yield from troubles(visitor, found_in(foreign, 6))
    way: Drain = _processes(alias, folder) if chance.random() < PROCESSES else drain
    if said := trouble_with(foreign, stored, way=way):
        yield said
    yield from troubles(visitor, found_in(foreign, 3), "writing")


def _sign_in() -> Client:
    user = User.objects.filter(username="visitor").first() or User.objects.create_superuser("visitor")
    client = Client()
    client.force_login(user)
    return client


def _processes(alias: str, folder: Path) -> Drain:
    """Drain by a real worker with processes of its own."""

    def way() -> Result:
        log = folder / "worker.log"
        worker = WorkerProcess(alias, folder, log, "--drain", "--poll-interval", "0.1")
        try:
            status = worker.wait(LIMIT)
            return Result(0, [status], worker.output, hung=False)
        except TimeoutExpired:
            return Result(0, [], worker.output, hung=True)
        finally:
            worker.destroy()

    return way


def _relayed(alias: str, rows: list[Forgery]) -> Iterator[str]:
    """Relay the rows, and ordinary jobs behind them, to the other database."""
    other = {"default": "postgres", "postgres": "default"}[alias]
    with (
        override_settings(JOBQUEUE={"DATABASE": alias, "RELAY_TO": other}),
        vandal(alias) as here,
        vandal(other) as there,
    ):
        here.clear()
        there.clear()
        forge(here, rows)
        ordinary = put_ordinary()
        if said := relay_all():
            yield f"relay: {said}"
        left = set(ordinary) - {row["id"] for row in there.jobs().values()}
        if left:
            yield f"relay: {len(left)} of {len(ordinary)} ordinary jobs are left"
        here.clear()
        there.clear()


def _summed_up(tally: Tally, rounds: int, seconds: float) -> int:
    kinds = ("rows", "refused by the database", "tracebacks", "hangs", "starved neighbours")
    counts = ", ".join(f"{tally.counts[kind]} {kind}" for kind in kinds)
    print(f"\n{rounds} rounds in {seconds / 60:.1f} minutes: {counts}")  # noqa: T201
    for one in tally.failures:
        print(f"  {one}")  # noqa: T201
    return int(bool(tally.failures))
