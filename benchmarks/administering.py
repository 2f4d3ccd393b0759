"""The speed of the admin's pages among millions of jobs, beside Django's default admin of the same table."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict

from benchmarks.children import child
from benchmarks.databases import postgres_place, sqlite_place
from benchmarks.report import Figure
from benchmarks.site import Site

MAKING = {"sqlite": sqlite_place, "postgres": postgres_place}


def pages(site: Site) -> Iterator[Figure]:
    """Time every page and search of the admin among 5 million jobs, without and with statistics.

    This uses a database and a process of its own, because the admin needs other settings. If Django's default
    ModelAdmin has the page too, it is timed once for comparison, because it may take a minute.
    """
    with MAKING[site.place.vendor]() as place:
        asked = {"place": asdict(place), "count": site.size(5_000_000, 20_000), "times": site.size(20, 1)}
        with child("benchmarks.admin_process", asked=asked) as visiting:
            for answer in map(json.loads, visiting.answers):
                yield Figure.of(answer)
            if status := visiting.status():
                raise RuntimeError(f"the process that looks at pages ended with {status}")
