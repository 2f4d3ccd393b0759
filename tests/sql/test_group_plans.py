"""Tests of the cost of dead letters by error: every step reads a range of their index."""

from __future__ import annotations

import pytest
from django.contrib.admin import site
from django.db import connections

from jobqueue.admin.lists import error_groups
from jobqueue.models import DeadLetter
from jobqueue.records import Caps
from tests.conftest import make_sql_backend
from tests.sql.test_plans import Explained, Steps, analyse, blocks, fill, nodes, undone

FEW, MANY = 1_000, 50_000
GROUPS = 20
CAPS = Caps(group=40, groups=1_000, hour=2, hours=1_000)
RECENT = "'2020-01-01T00:00:00.000000Z'"


def dead(alias, count):
    """Store dead letters of some errors, and a few that have none; as many others are done."""
    fill(alias, count, name="done", status="'completed'", error_fingerprint="'kind-' || (i % 7)", completed_at=RECENT)
    fill(
        alias,
        count,
        name="dead",
        status="'dead_letter'",
        error_fingerprint=f"CASE i % {GROUPS} WHEN 0 THEN NULL ELSE 'kind-' || (i % {GROUPS}) END",
        completed_at=moment(alias),
    )


def moment(alias):
    """Spread the ends over the last day, as SQL of a row's number ``i``."""
    if connections[alias].vendor == "postgresql":
        return "now() - (i % 1400) * interval '1 minute'"
    return "strftime('%Y-%m-%dT%H:%M:%S.000000Z', 'now', '-' || (i % 1400) || ' minutes')"


def look(backend):
    """Do all that the pages ask for."""
    found = backend.errors.groups(GROUPS, CAPS)
    assert len(found.groups) == GROUPS
    assert all(group.capped and sum(group.hourly) for group in found.groups)
    for name in ("kind-7", ""):
        assert backend.errors.group(name, CAPS) is not None
        assert len(error_groups.jobs(site.get_model_admin(DeadLetter), name)) == error_groups.JOBS_SHOWN


@pytest.mark.sqlite
@pytest.mark.parametrize("analysed", [False, True])
def test_groups_on_sqlite_cost_no_more_among_fifty_times_as_many(fresh, analysed, settings):
    settings.JOBQUEUE = {"DATABASE": "default"}
    costs = []
    for count in (FEW, MANY):
        fresh("default")
        dead("default", count)
        if analysed:
            analyse("default")
        connections["default"].ensure_connection()
        steps = Steps(connections["default"])
        with steps("groups"):
            look(make_sql_backend("default", None))
        costs.append(steps["groups"])
    few, many = costs
    assert many < 2 * few


@pytest.mark.postgres
@pytest.mark.parametrize("analysed", [False, True])
def test_groups_on_postgres_are_ranges_of_their_index_however_many_there_are(fresh, analysed, settings):
    settings.JOBQUEUE = {"DATABASE": "postgres"}
    found = []
    for count in (FEW, MANY):
        fresh("postgres")
        dead("postgres", count)
        if analysed:
            analyse("postgres")
        explained = Explained("postgres")
        with undone("postgres"), explained("groups"):
            look(make_sql_backend("postgres", None))
        found.append(explained.plans)
    few, many = found
    assert others(many) == set()
    assert blocks(many)["groups"] < 3 * blocks(few)["groups"]


def others(plans):
    """Show what touches jobs in any other way than by the index of dead letters by error, or by their ids."""
    return {
        (node["Node Type"], node.get("Index Name"), node.get("Filter"))
        for _name, _sql, plan in plans
        for node in nodes(plan)
        if (node.get("Relation Name") == "job_queue" or "Bitmap" in node["Node Type"] or node["Node Type"] == "Sort")
        and node.get("Index Name") not in ("job_queue_dead_error", "job_queue_pkey")
        and not is_small(node)
    }


def is_small(node):
    """Whether it only sorts or reads the few jobs that describe the groups."""
    if node["Node Type"] == "Sort":  # what comes out of it may be cut
        (node,) = node["Plans"]
        return node["Actual Rows"] <= GROUPS
    rows = node["Actual Rows"] + node.get("Rows Removed by Filter", 0)
    return node["Node Type"] in ("Bitmap Heap Scan", "Bitmap Index Scan") and rows <= GROUPS
