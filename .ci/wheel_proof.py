"""Prove that the installed wheel works where the repository is out of reach.

Run it with the Python of the environment that holds the wheel, isolated (``-I``) and from an empty folder. It makes a
small project there and uses the queue on SQLite and on the Postgres that JOBQUEUE_TEST_POSTGRES names.
"""
# ruff: noqa: INP001, S101, S603, T201 - a script that asserts and prints, and starts itself once per database

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import distribution
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import django
import psycopg
from django.conf import settings
from django.core.management import call_command
from django.db import connection, transaction
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

JOBS = """
from __future__ import annotations

from jobqueue import JobContext, job


@job(queue="letters")
def greet(name: str, ctx: JobContext) -> dict[str, object]:
    return {"text": f"hello {name}", "attempt": ctx.attempt}
"""

SQLITE = {
    "ENGINE": "django.db.backends.sqlite3",
    "NAME": "proof.sqlite3",
    "OPTIONS": {
        "transaction_mode": "IMMEDIATE",
        "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
    },
}


def main() -> None:
    """Look into the wheel, then use it on each database in a process of its own: Django's settings are one each."""
    assert not any(Path.cwd().iterdir()), "the folder must be empty"
    look_into_the_wheel()
    shop = Path("shop")
    shop.mkdir()
    (shop / "__init__.py").touch()
    (shop / "jobs.py").write_text(JOBS)
    use_in_a_process(SQLITE)
    with postgres_database(os.environ["JOBQUEUE_TEST_POSTGRES"]) as database:
        use_in_a_process(database)


def look_into_the_wheel() -> None:
    """Check what was installed, and that nothing else is there to import."""
    package = distribution("django-jobqueue")
    files = {str(one) for one in package.files or ()}
    assert {"jobqueue/py.typed", "jobqueue/migrations/__init__.py", "jobqueue/migrations/0001_initial.py"} <= files
    # The plugin of pytest stands beside the package; __pycache__ is what the installer compiled of it.
    ours = {"jobqueue", "pytest_jobqueue.py", "__pycache__"}
    foreign = {one.split("/")[0] for one in files if ".dist-info/" not in one} - ours
    assert not foreign, f"the wheel brings {sorted(foreign)}"
    assert any(one.endswith("licenses/LICENSE") for one in files)
    for name in ("tests", "benchmarks", "example_project"):
        assert find_spec(name) is None, f"{name} can be imported"
    where = find_spec("jobqueue")
    assert where is not None
    assert where.origin is not None
    assert Path(where.origin).is_relative_to(sys.prefix), f"jobqueue is imported from {where.origin}"
    print(f"django-jobqueue {package.version}: {len(files)} files in {sys.prefix}", flush=True)


@contextmanager
def postgres_database(conninfo: str) -> Iterator[dict[str, Any]]:
    """Make a Postgres database, and drop it."""
    name = f"jobqueue_wheel_{os.getpid()}"
    named = {"host": "HOST", "port": "PORT", "user": "USER", "password": "PASSWORD"}
    values = {named[key]: str(value) for key, value in conninfo_to_dict(conninfo).items() if key in named}
    with psycopg.connect(conninfo, autocommit=True) as server:
        server.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        try:
            yield {"ENGINE": "django.db.backends.postgresql", **values, "NAME": name}
        finally:
            server.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


def use_in_a_process(database: dict[str, Any]) -> None:
    """Run this file again, for one database."""
    subprocess.run([sys.executable, "-I", __file__, json.dumps(database)], check=True)


def use(database: dict[str, Any]) -> None:
    """Be a project with the queue in it: migrate, enqueue in a transaction, claim, run, complete."""
    sys.path.insert(0, os.fspath(Path.cwd()))
    settings.configure(DATABASES={"default": database}, INSTALLED_APPS=["jobqueue", "shop"], USE_TZ=True)
    django.setup()
    call_command("check", fail_level="ERROR")
    call_command("migrate", verbosity=0)
    call_command("makemigrations", check_changes=True, dry_run=True, verbosity=0)

    import jobqueue

    lost = enqueue_and_roll_back()
    with transaction.atomic():
        receipt = jobqueue.enqueue("greet", {"name": "Ada"}, priority=1)
    assert receipt.created
    run_what_is_due()
    done = jobqueue.get(receipt.id)
    assert done.status == "completed"
    assert done.result == {"text": "hello Ada", "attempt": 1}
    assert jobqueue.backends.current().jobs.get(lost) is None
    print(f"{connection.vendor}: migrated, enqueued in a transaction, claimed, run and completed")


def enqueue_and_roll_back() -> str:
    """Enqueue a job in a transaction that fails, and return its id."""
    from shop.jobs import greet

    with transaction.atomic():
        receipt = greet.using(priority=1).enqueue(name="Nobody")
        transaction.set_rollback(True)
    return str(receipt.id)


def run_what_is_due() -> None:
    """Do what a worker does, once."""
    from jobqueue import backends
    from jobqueue.handlers.registry import registry
    from jobqueue.policy.settling import completed
    from jobqueue.records import ClaimRequest

    backend = backends.current()
    taken = backend.cycle("proof", (), ClaimRequest(limit=10, types=registry.names)).claims
    assert [claim.type for claim in taken] == ["greet"]
    done = []
    for claim in taken:
        kind = registry.get(claim.type)
        done.append(completed(claim, kind.result.dump(kind.call(claim))))
    assert backend.cycle("proof", done).refused == ()


if __name__ == "__main__":
    if len(sys.argv) > 1:
        use(json.loads(sys.argv[1]))
    else:
        main()
