"""The times of the admin's pages in Django's test client, and their limits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from django.contrib.auth.models import User
from django.core.management import call_command
from django.db import connection
from django.test import Client

from benchmarks import jobs, millions, timing
from benchmarks.report import Figure, Value
from benchmarks.visits import Visit, visits

#: Milliseconds for a page.
GOAL = 150.0
#: The names that a list offers are those of handlers.
HANDLERS = (jobs.resize_image, jobs.nap)


def figures(vendor: str, count: int, times: int) -> Iterator[Figure]:
    """Fill the table and time each page, before and after the database collected statistics."""
    call_command("migrate", verbosity=0)
    _leave_unanalysed()
    millions.fill(count)
    client = Client()
    client.force_login(User.objects.create_superuser("bench"))
    for analysed in (False, True):
        if analysed:
            _analyse()
        for visit in visits():
            name = f"{visit.name}{', analysed' if analysed else ''}"
            yield _looked(vendor, name, client, visit, times, beside=analysed)


def _looked(vendor: str, name: str, client: Client, visit: Visit, times: int, *, beside: bool) -> Figure:
    address = visit.address()
    if address is None:
        return Figure(database=vendor, measure=name, ours=Value("not run: there is no such page"))
    _get(client, address, visit.query)  # plans, templates and caches
    ours = timing.tail([timing.seconds(lambda: _get(client, address, visit.query)) for _ in range(times)])
    return Figure(
        database=vendor,
        measure=name,
        ours=ours,
        raw=_default(client, visit) if beside else None,
        goal=f"p95 < {GOAL:g} ms",
        reached=ours.numbers["p95"] < GOAL,
    )


def _default(client: Client, visit: Visit) -> Value | None:
    """Time the corresponding page of Django's default admin once."""
    address = visit.address("plain") if visit.plain is not None else None
    if address is None:
        return None
    milliseconds = 1000 * timing.seconds(lambda: _get(client, address, visit.plain or {}))
    return Value(f"ModelAdmin {milliseconds:,.0f} ms", {"once": milliseconds})


def _get(client: Client, address: str, query: Mapping[str, str]) -> None:
    answer = client.get(address, query)
    if answer.status_code != 200:
        raise RuntimeError(f"{address} {dict(query)} answered {answer.status_code}")


def _leave_unanalysed() -> None:
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("ALTER TABLE job_queue SET (autovacuum_enabled = false)")


def _analyse() -> None:
    with connection.cursor() as cursor:
        cursor.execute("VACUUM (ANALYZE)" if connection.vendor == "postgresql" else "ANALYZE")
    connection.close()  # SQLite reads what it found out as it connects
