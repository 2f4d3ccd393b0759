"""A Postgres server that ends sessions, or ends itself."""

from __future__ import annotations

from itertools import pairwise

import psycopg
from django.db import connection

from benchmarks.faults.catalogue import POSTGRES, fault
from benchmarks.faults.laboratory import Laboratory
from benchmarks.faults.ledger import What
from benchmarks.workers import until

ONE_OF_THE_OTHERS = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
 WHERE datname = current_database() AND pid <> pg_backend_pid() ORDER BY random() LIMIT 1
"""


@fault("T13", "sessions that the server ends, several a second", databases=POSTGRES)
def sessions_end(lab: Laboratory) -> None:
    """End sessions of workers and producers one after another: no worker ends, and no job is lost."""
    lab.crew.start(2, processes=2, lease=lab.lease)
    lab.load.start(2, rate=20)
    connection.close()  # so that it is not ours that is ended
    with psycopg.connect(lab.place.address, autocommit=True) as operator:
        while lab.goes_on():
            lab.pause(0.05, 0.35)
            if operator.execute(ONE_OF_THE_OTHERS).fetchone():
                lab.injected("pg_terminate_backend")
    lab.healed()
    lab.findings["longest_seconds_without_an_end"] = _longest_gap(lab)


@fault("T14", "a Postgres that crashes and comes back", databases=POSTGRES, own_cluster=True)
def server_crashes(lab: Laboratory) -> None:
    """Crash the server under load and restart it: accepted jobs are there, and workers recover by themselves."""
    lab.crew.start(2, processes=2, lease=lab.lease)
    lab.load.start(2, rate=20)
    connection.close()
    while lab.goes_on():
        lab.pause(0.5, 1 if lab.quick else 5)
        lab.injected("pg_ctl -m immediate stop")
        lab.cluster.stop("immediate")
        try:
            lab.pause(0, 1 if lab.quick else 20)
        finally:
            lab.cluster.start()
        lab.healed()
        ends = len(lab.told(What.END))
        until(lambda least=ends: len(lab.told(What.END)) > least, "work goes on")  # type: ignore[misc]
    lab.findings["longest_seconds_without_an_end"] = _longest_gap(lab)


def _longest_gap(lab: Laboratory) -> float:
    ends = [one.at for one in lab.told(What.END)]
    return round(max((after - before for before, after in pairwise(ends)), default=0.0), 2)
