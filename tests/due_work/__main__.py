"""Proofs of due-work-harness against this queue: ``python -m tests.due_work sqlite`` or ``postgres``.

It needs the package ``due-work-harness[django]``, which the tests don't install. On both databases, it proves the
fencing invariants and kills a whole worker at each place of an attempt. On Postgres it also kills the attempt after
each of its commits, and fails each callback, which the package can't do on SQLite. It ends with status 1 if one fails.
"""

from __future__ import annotations

import os
import sys
import traceback
from functools import partial


def proofs(postgres):
    """Yield the name of each proof, and a function that raises AssertionError if it fails."""
    from due_work_harness import crash_histories, process_histories
    from due_work_harness.profiles import bounded_ownership

    from tests.due_work.histories import COMMITS, DELIVERY, WORKER_DEATHS
    from tests.due_work.ownership import OWNERSHIP

    for name, proof in sorted(vars(bounded_ownership).items()):
        if name.startswith("assert_") and not name.startswith(LEFT_OUT):
            yield name.removeprefix("assert_"), partial(proof, OWNERSHIP)

    def told(name, histories, *given):
        runs = histories(*given)
        for run in runs:
            say(f"    {run.label}: {run.midway} then {run.after}")
        crash_histories.assert_histories_converge(name, runs)

    yield "worker_deaths", partial(told, WORKER_DEATHS.name, process_histories.process_histories, WORKER_DEATHS)
    if postgres:
        yield "commits", partial(told, COMMITS.name, crash_histories.crash_histories, DELIVERY, COMMITS)


def say(line: str) -> None:
    """Write a line of the result."""
    sys.stdout.write(f"{line}\n")


#: Proofs that take more than an ownership, or that only run the others.
LEFT_OUT = ("assert_test_", "assert_fenced_ownership_contract", "assert_the_lease_outlives_the_work")


def main() -> int:
    """Set Django up as the tests do, on a database that is deleted at the end, and run all proofs."""
    postgres = sys.argv[1:] == ["postgres"]
    os.environ["DJANGO_SETTINGS_MODULE"] = "tests.due_work.settings"
    os.environ["DUE_WORK_DATABASE"] = "postgres" if postgres else "sqlite"
    import django

    django.setup()
    from django.db import connections
    from django.test.utils import setup_databases, setup_test_environment, teardown_databases
    from due_work_harness import configure
    from due_work_harness.integrations.django import django_host

    configure(django_host(production_packages={"jobqueue"}))
    setup_test_environment()
    made = setup_databases(verbosity=0, interactive=False)
    try:
        return run(postgres)
    finally:
        connections.close_all()
        teardown_databases(made, verbosity=0)


def run(postgres) -> int:
    """Run each proof on empty tables."""
    from django.contrib.auth.models import Group

    from jobqueue.models import Attempt, Job

    failed = 0
    for name, proof in proofs(postgres):
        for table in (Attempt, Job, Group):
            table.objects.all().delete()
        try:
            proof()
        except Exception:  # AssertionErrors, and whatever a proof did not foresee
            failed += 1
            say(f"FAILED {name}")
            traceback.print_exc(limit=4)
        else:
            say(f"ok     {name}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
