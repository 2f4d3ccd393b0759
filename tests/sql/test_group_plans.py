"""Tests of the cost of dead letters by error: every step reads a range of their index."""

from __future__ import annotations

import pytest
from django.contrib.admin import site
from django.db import connections

from jobqueue.admin.lists import error_groups
from jobqueue.models import DeadLetter
from jobqueue.records import Caps, GroupFilter, GroupOrder
from tests.conftest import make_sql_backend
from tests.sql.test_plans import Explained, Steps, all_visible, analyse, blocks, fill, nodes, undone

FEW, MANY = 1_000, 50_000
GROUPS = 20
CAPS = Caps(group=40, groups=500, hour=2, hours=1_000)
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
    for order in GroupOrder:
        found = backend.errors.groups(GROUPS, CAPS, GroupFilter(order=order))
        assert len(found.groups) == GROUPS
        assert all(group.capped and sum(group.hourly) for group in found.groups)
    assert len(backend.errors.groups(GROUPS, CAPS, GroupFilter(type="resize", text="disk")).groups) == 0
    for name in ("kind-7", ""):
        assert backend.errors.group(name, CAPS) is not None
        assert backend.errors.shares(name, GROUPS).of == GROUPS
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


@pytest.mark.postgres
@pytest.mark.parametrize("seen", [False, True])
def test_postgres_counts_all_groups_in_the_order_of_their_index(fresh, seen, settings):
    """The count is exact where the rows need not be looked at, and bounded where they do."""
    settings.JOBQUEUE = {"DATABASE": "postgres"}
    fresh("postgres")
    dead("postgres", MANY)
    if seen:
        all_visible("postgres")
    explained = Explained("postgres")
    backend = make_sql_backend("postgres", None)
    with undone("postgres"), explained("groups"):
        found = backend.errors.groups(GROUPS, CAPS._replace(group=MANY, groups=2 * MANY))
        sums = [plan for _name, sql, plan in explained.plans if "OVER ()" in sql]
    assert others(explained.plans) == set()
    assert {group.capped for group in found.groups} == {not seen}
    assert sum(group.count for group in found.groups) == MANY or not seen
    (walk,) = [node for node in nodes(sums[0]) if node.get("Relation Name") == "job_queue"]
    assert (walk["Node Type"], walk["Actual Rows"] < MANY) == ("Index Only Scan", not seen)


def test_the_planner_is_left_as_it_was(alias):
    """A group is read inside a caller's transaction."""
    backend = make_sql_backend(alias, None)
    with backend.atomic():
        assert backend.errors.groups(1, CAPS).groups == ()
        if connections[alias].vendor == "postgresql":
            with connections[alias].cursor() as cursor:
                for name in ("enable_bitmapscan", "enable_seqscan", "enable_sort", "jit"):
                    cursor.execute(f"SHOW {name}")
                    assert cursor.fetchone() == ("on",)


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
