"""Tests of the plans of searches on Postgres, which knows nothing of a table that was never analysed."""

from __future__ import annotations

import pytest

from jobqueue.records import Filter
from jobqueue.states import JobStatus
from tests.conftest import make_sql_backend
from tests.sql.test_plans import MANY, Explained, analyse, fill, undone, walks

DEAD = frozenset({JobStatus.DEAD_LETTER})


class OfItsValues(Explained):
    """Has Postgres explain each statement for its own values: the type of a limit isn't known without them."""

    for_any_values = Explained.for_its_values


@pytest.mark.postgres
@pytest.mark.parametrize(
    "wanted",
    [
        Filter(statuses=DEAD, types=frozenset({"resize"})),
        Filter(statuses=DEAD, types=frozenset({"resize", "greet"})),
        Filter(statuses=DEAD, types=frozenset({"resize"}), tenant="tenant-7", error="timed out"),
    ],
    ids=["a type", "types", "an error of a tenant's jobs of a type"],
)
def test_dead_letters_are_searched_in_the_order_in_which_they_are_shown(fresh, wanted):
    """The index that has them by queue and type is no shorter way, and what it finds would have to be sorted."""
    fresh("postgres")
    fill("postgres", MANY, status="'dead_letter'", tenant="'tenant-' || (i % 10)", error="'timed out'")
    backend = make_sql_backend("postgres", None)
    for prepare in (lambda: None, lambda: analyse("postgres")):
        prepare()
        explained = OfItsValues("postgres")
        with undone("postgres"), explained("search"):
            found = backend.jobs.search(wanted, 1_000)
        assert (len(found[:1_000]), found.more) == (1_000, True)
        assert walks(explained.plans) == set()
        assert "'job_queue_dead'" not in str(explained.plans)
