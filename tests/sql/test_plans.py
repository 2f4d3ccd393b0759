"""Tests of the plans of a worker's statements: a turn visits as many rows among fifty jobs as among a thousand.

A crowd of 50,000 rows stands around, before or behind what the worker may run. Tables come fresh from the migration, so
that a planner knows nothing of them until they are analysed.
"""

from __future__ import annotations

import re
import sqlite3
from collections import Counter
from contextlib import closing, contextmanager
from datetime import timedelta

import pytest
from django.db import connections, transaction

from jobqueue.backends.postgresql.statements import cycle_statement
from jobqueue.backends.sqlite import statements
from jobqueue.backends.sqlite.claims import claim_rows
from jobqueue.policy.leases import settle_dead, settle_overdue
from jobqueue.policy.settling import completed
from jobqueue.records import Scope
from jobqueue.testing.contract.harness import LEASE, draft, failing, put, put_all, request, take
from tests.conftest import make_sql_backend

FEW, MANY = 1_000, 50_000
LONG_AGO, FAR_AHEAD = "2020-01-01T00:00:00.000000Z", "2100-01-01T00:00:00.000000Z"

SERIES = {
    "sqlite": "WITH RECURSIVE s(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM s WHERE i < {count})",
    "postgresql": "WITH s AS (SELECT generate_series(1, {count}) AS i)",
}
ID = {"sqlite": "printf('{name}%024d', i)", "postgresql": "'{name}' || lpad(i::text, 24, '0')"}


def fill(alias, count, name="crowd", **columns):
    """Store many jobs in one statement; a column's value is SQL that may use the row's number ``i``."""
    vendor = connections[alias].vendor
    values = {
        "id": ID[vendor].format(name=name),
        "type": "'resize'",
        "priority": "1 + i % 10",
        "payload": "'{{}}'",
        "scheduled_at": f"'{LONG_AGO}'",
        "created_at": f"'{LONG_AGO}'",
        "updated_at": f"'{LONG_AGO}'",
    } | columns
    rows = f"SELECT {', '.join(values.values())} FROM s".replace("{{", "{").replace("}}", "}")
    with connections[alias].cursor() as cursor:
        cursor.execute(
            f"INSERT INTO job_queue ({', '.join(values)}) {SERIES[vendor].format(count=count)} {rows}"
            if vendor == "postgresql"
            else f"{SERIES[vendor].format(count=count)} INSERT INTO job_queue ({', '.join(values)}) {rows}"
        )


def some(alias, **columns):
    """Store the hundred jobs that a worker may run now."""
    fill(alias, 100, name="some", **columns)


RUNNING = {"status": "'in_progress'", "fence": "1", "attempts": "1", "lease_owner": "'worker-' || (i % 1000)"}


def a_backlog(alias, count):
    fill(alias, count)


def future_jobs_of_the_best_priority(alias, count):
    fill(alias, count, priority="1", scheduled_at=f"'{FAR_AHEAD}'")
    some(alias, priority="5")


def a_type_that_nobody_knows(alias, count):
    fill(alias, count, type="'unheard_of'")
    some(alias, type="'rare'", priority="10")


def many_types_that_nobody_knows(alias, count):
    fill(alias, count, type="'unheard_of_' || (i % 10)", priority="1")
    some(alias, type="'rare'", priority="10")


def a_paused_queue(alias, count):
    fill(alias, count, queue="'stopped'")
    some(alias, priority="10")


def a_queue_of_other_workers(alias, count):
    fill(alias, count, queue="'theirs'", priority="1")
    some(alias)


def running_jobs(alias, count):
    fill(alias, count, lease_until=f"'{FAR_AHEAD}'", **RUNNING)
    fill(alias, 20, name="late", lease_until=f"'{LONG_AGO}'", **RUNNING)
    some(alias)


def jobs_that_expire_in_the_future(alias, count):
    fill(alias, count, expires_at=f"'{FAR_AHEAD}'")
    fill(alias, 20, name="late", expires_at=f"'{LONG_AGO}'", priority="10")


CROWDS = [
    a_backlog,
    future_jobs_of_the_best_priority,
    a_type_that_nobody_knows,
    many_types_that_nobody_knows,
    a_paused_queue,
    a_queue_of_other_workers,
    running_jobs,
    jobs_that_expire_in_the_future,
]
QUEUES = frozenset({"default", "stopped"})


def all_visible(alias):
    with connections[alias].cursor() as cursor:
        cursor.execute("VACUUM job_queue")
        # Another session's snapshot may keep it from marking the pages.
        cursor.execute("UPDATE pg_class SET relallvisible = relpages WHERE oid = 'job_queue'::regclass")


def analyse(alias):
    with connections[alias].cursor() as cursor:
        if connections[alias].vendor == "postgresql":
            vacuum(cursor)
        else:
            cursor.execute("ANALYZE")
    connections[alias].close()  # a connection of SQLite's reads the statistics as it opens


def vacuum(cursor):
    """Remove what earlier turns left dead, which would count as a cost of later ones, and analyse the table."""
    # VACUUM marks no page as visible to all whose commits are not on the disk yet. A synchronous commit sends them.
    cursor.execute("SET synchronous_commit = on; COMMENT ON TABLE job_queue IS 'on the disk'")
    cursor.execute("VACUUM (ANALYZE, INDEX_CLEANUP ON) job_queue")


def worker(alias):
    """A backend that has had its first turns: where others stand in the way, it has noticed."""
    backend = make_sql_backend(alias, None)
    backend.operator.pause(Scope.QUEUE, "stopped")
    with undone(alias):
        take(backend, 20, queues=QUEUES)
    return backend


@contextmanager
def undone(alias):
    """A transaction that leaves everything as it was."""
    with transaction.atomic(using=alias):
        yield
        transaction.set_rollback(True, using=alias)


def turns(backend, measured):
    """Do all that a worker does in its turns; ``measured`` names and counts each."""
    with measured("claim"):
        claims = take(backend, 20, queues=QUEUES)
    assert len(claims) == 20
    with measured("extend"):
        assert backend.extend(claims, LEASE).lost == ()
    with measured("complete and claim"):
        done = [completed(claim, "{}") for claim in claims[:10]]
        cycle = backend.cycle("me", done, request(10, queues=QUEUES))
    assert (cycle.refused, len(cycle.claims)) == ((), 10)
    with measured("settle"):
        mixed = [completed(claim) for claim in claims[10:15]] + [failing(claim) for claim in claims[15:]]
        assert backend.cycle("me", mixed).refused == ()
    with measured("claim of nothing"):
        assert backend.cycle("me", (), request(10, queues=frozenset({"empty"}))).claims == ()
    with measured("sweep"):
        backend.sweep(settle_overdue)
    with measured("end claims"):
        assert len(backend.end_claims("me", settle_dead)) == 10


# SQLite


class Steps(Counter):
    """Counts the steps of SQLite's virtual machine: each row it visits costs some."""

    def __init__(self, connection):
        super().__init__()
        self.driver = connection.connection

    @contextmanager
    def __call__(self, name):
        def step():
            self[name] += 1

        self.driver.set_progress_handler(step, 1)
        try:
            yield
        finally:
            self.driver.set_progress_handler(None, 1)


def steps_of_turns():
    backend = worker("default")
    with undone("default"):
        steps = Steps(connections["default"])
        turns(backend, steps)
    return steps


@pytest.mark.sqlite
@pytest.mark.parametrize("crowd", CROWDS, ids=lambda crowd: crowd.__name__)
def test_a_turn_on_sqlite_visits_no_more_rows_among_fifty_times_as_many(fresh, crowd):
    fresh("default")
    crowd("default", FEW)
    few = steps_of_turns()
    fresh("default")
    crowd("default", MANY)
    assert costlier(steps_of_turns(), few, one_pass=20 * MANY) == {}
    analyse("default")
    assert costlier(steps_of_turns(), few, one_pass=20 * MANY) == {}


#: The turns that may walk through the running jobs once.
WALKS = ("sweep", "end claims")


def costlier(many, few, one_pass):
    """Show what costs more than twice as much among many.

    A sweep that ends something may count the running jobs once besides, but not once for each lease that it ends. What
    a dead worker holds is found in one walk through them.
    """
    allowed = {name: 2 * few[name] + (one_pass if name in WALKS else 0) for name in many}
    return {name: (few[name], many[name]) for name in many if many[name] > allowed[name]}


#: Each statement with the searches it may do, and how many there are of them.
SEARCHES = {
    "READY": {"INDEX job_queue_ready (priority=? AND scheduled_at<?)": 10},
    "READY_OF": {"INDEX job_queue_ready_type (queue=? AND type=? AND priority=? AND scheduled_at<?)": 1},
    "NEXT_DUE": {"INDEX job_queue_ready (priority=? AND scheduled_at>?)": 10},
    "TAKE": {"INTEGER PRIMARY KEY (rowid=?)": 1},
    "RAN_OUT": {"INDEX job_queue_leased (lease_until<?)": 1},
    "HELD_ROWS": {"INDEX job_queue_leased (lease_until>?)": 1},
    "EXPIRE": {
        "INDEX job_queue_expiring (expires_at>? AND expires_at<?)": 1,
        "INTEGER PRIMARY KEY (rowid=?)": 1,
    },
    "EXTEND": {"INDEX sqlite_autoindex_job_queue_1 (id=?)": 1},
    "COMPLETE": {"INDEX sqlite_autoindex_job_queue_1 (id=?)": 1},
    "SETTLE": {"INDEX sqlite_autoindex_job_queue_1 (id=?)": 1},
}


def plan_on_sqlite(connection, statement):
    """Read the plan with parameters in their places, as the backend sends them."""
    names = set(re.findall(r":(\w+)", statement))
    values = dict.fromkeys(names) if names else (None,) * statement.count("?")
    return [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}", values)]


SEARCH = r"SEARCH (?:TABLE )?(?:job_queue|j|job_queue AS j) USING (?:COVERING )?(.*)"
WALK = r"\b(SCAN|SEARCH) (TABLE )?(job_queue|j)\b|AUTOMATIC|TEMP B-TREE"
#: Sorting what has the same lease_until is all that an index on it leaves to do.
TIES = r"TEMP B-TREE FOR (RIGHT PART|LAST TERM) OF ORDER BY"


def searches(plan):
    """Count the searches of a plan; whatever scans the table or sorts its rows is counted by its own words."""
    found = Counter()
    for line in plan:
        if match := re.fullmatch(SEARCH, line):
            found[match[1]] += 1
        elif re.search(WALK, line) and not re.search(TIES, line):
            found[line] += 1
    return found


@pytest.mark.sqlite
@pytest.mark.parametrize("crowd", [a_type_that_nobody_knows, running_jobs], ids=lambda crowd: crowd.__name__)
def test_each_statement_on_sqlite_searches_its_index_analysed_or_not(fresh, crowd):
    fresh("default")
    crowd("default", MANY)
    for prepare in (lambda: None, lambda: analyse("default")):
        prepare()
        with closing(sqlite3.connect(connections["default"].settings_dict["NAME"])) as raw:
            found = {name: searches(plan_on_sqlite(raw, getattr(statements, name))) for name in SEARCHES}
        assert found == SEARCHES


@pytest.mark.sqlite
@pytest.mark.parametrize("analysed", [False, True])
def test_the_skip_scan_on_sqlite_searches_its_index_and_visits_one_row_a_group(fresh, analysed):
    fresh("default")
    a_type_that_nobody_knows("default", MANY)
    if analysed:
        analyse("default")
    with closing(sqlite3.connect(connections["default"].settings_dict["NAME"])) as raw:
        ((search, count),) = searches(plan_on_sqlite(raw, statements.NEXT_GROUP)).items()
        steps = 0

        def step():
            nonlocal steps
            steps += 1

        raw.set_progress_handler(step, 1)
        groups = [group for group, _first in claim_rows.groups(raw)]
    assert search.startswith("INDEX job_queue_ready_type ((queue,type,priority")
    assert count == 1
    assert groups == [
        ("default", "rare", 10),
        *[("default", "unheard_of", priority) for priority in range(1, 11)],
    ]
    assert steps < 100 * len(groups)


# Postgres


class Explained:
    """Has Postgres explain each statement of a turn before it runs, for its own values and for any."""

    def __init__(self, alias):
        self.alias = alias
        self.plans = []
        self.name = None

    @contextmanager
    def __call__(self, name):
        self.name = name
        with connections[self.alias].execute_wrapper(self.explain):
            yield

    def explain(self, execute, sql, params, many, context):
        if "job_queue" in sql and sql.split(None, 1)[0] in ("WITH", "SELECT", "UPDATE"):
            for look in (self.for_its_values, self.for_any_values):
                execute("SAVEPOINT explained", None, False, context)
                look(lambda text, values=None: execute(text, values, False, context), sql, params)
                self.plans.append((self.name, sql, context["cursor"].fetchone()[0][0]["Plan"]))
                execute("ROLLBACK TO SAVEPOINT explained", None, False, context)
        return execute(sql, params, many, context)

    def for_its_values(self, execute, sql, params):
        execute(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {sql}", params)

    def for_any_values(self, execute, sql, params):
        values = []
        places = {}

        def place(match):
            name = match[1] or len(values)
            if name not in places:
                values.append(params[name])
                places[name] = f"${len(values)}"
            return places[name]

        text = re.sub(r"%\((\w+)\)s|%s", place, sql)
        execute("SET LOCAL plan_cache_mode = force_generic_plan")
        execute("DEALLOCATE ALL")  # a rollback leaves what was prepared
        execute(f"PREPARE explained AS {text}")
        given = f"({', '.join(['%s'] * len(values))})" if values else ""
        execute(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) EXECUTE explained {given}", values or None)


def plans_of_turns():
    backend = worker("postgres")
    explained = Explained("postgres")
    with undone("postgres"):
        turns(backend, explained)
    return explained.plans


def nodes(plan):
    yield plan
    for child in plan.get("Plans", ()):
        yield from nodes(child)


def blocks(plans):
    """Count the blocks that each verb visited."""
    found = Counter()
    for name, _sql, plan in plans:
        found[name] += plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]
    return found


def most_rows(plans):
    """Count the rows that a scan of the table visited, all its rounds together; the scan that visited most."""
    return max(
        (node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"]
        for _name, _sql, plan in plans
        for node in nodes(plan)
        if node.get("Relation Name") == "job_queue" and "Scan" in node["Node Type"]
    )


def walks(plans, few=100):
    """Show what a plan does to the whole table: reading it without an index, or sorting more than a few of its rows."""
    found = set()
    for name, _sql, plan in plans:
        for node in nodes(plan):
            if node["Node Type"] == "Seq Scan" and node["Relation Name"] == "job_queue":
                found.add((name, "reads the table", node.get("Filter")))
            if node["Node Type"] == "Sort" and node["Plans"][0]["Actual Rows"] > few:
                found.add((name, "sorts the table", str(node["Sort Key"])))
    return found


#: The ranges of a claim and of the look for the next due job: each over its index, down to the moment.
PRIORITY_RANGE = ("job_queue_ready", "priority = scheduled_at <=")
GROUP_RANGE = ("job_queue_ready_type", "priority = queue = scheduled_at <= type =")
NEXT_DUE_RANGE = ("job_queue_ready", "priority = scheduled_at >")


def ranges(plan):
    """Name the index of each scan that is bounded by the moment, and what it compares."""
    found = Counter()
    for node in nodes(plan):
        condition = node.get("Index Cond", "").replace("(priority > 0) AND ", "")
        if "scheduled_at" in condition:
            compared = re.findall(r"\(+(\w+)\)?(?:::\w+)? (<=|>=|=|<|>) ", condition)
            found[node["Index Name"], " ".join(f"{column} {sign}" for column, sign in sorted(compared))] += 1
    return found


def claims_by_other_ranges(plans):
    """Show the claims that use other ranges than theirs; among few queued jobs Postgres may well choose another."""
    found = []
    for name, sql, plan in plans:
        if "taken AS" in sql:
            arm = GROUP_RANGE if "groups AS" in sql else PRIORITY_RANGE
            if ranges(plan) != {arm: 1, NEXT_DUE_RANGE: 1}:
                found.append((name, arm, ranges(plan)))
    return found


@pytest.mark.postgres
@pytest.mark.parametrize("crowd", CROWDS, ids=lambda crowd: crowd.__name__)
def test_a_turn_on_postgres_visits_no_more_among_fifty_times_as_many(fresh, crowd):
    fresh("postgres")
    crowd("postgres", FEW)
    few = blocks(plans_of_turns())
    fresh("postgres")
    crowd("postgres", MANY)
    for prepare in (lambda: None, lambda: analyse("postgres")):
        prepare()
        plans = plans_of_turns()
        assert costlier(blocks(plans), few, one_pass=MANY / 10) == {}
        bounded = [one for one in plans if not (crowd is running_jobs and one[0] in WALKS)]
        assert most_rows(bounded) < MANY / 100
        assert walks(bounded) == set()
        assert crowd is running_jobs or claims_by_other_ranges(plans) == []


@pytest.mark.postgres
def test_a_table_analysed_while_it_was_empty_is_searched_by_index_all_the_same(fresh):
    fresh("postgres")
    with connections["postgres"].cursor() as cursor:
        vacuum(cursor)
    a_type_that_nobody_knows("postgres", MANY)
    plans = plans_of_turns()
    assert walks(plans) == set()
    assert claims_by_other_ranges(plans) == []


NOW = "statement_timestamp()"


def prepare_cycles(backend):
    """Have all cycles prepared that there are: with and without completions, in the plain way and group by group."""
    for crowded in (False, True):
        job_id = put(backend)
        backend._crowd.met(0, is_met=crowded)
        (claim,) = backend.cycle("me", (), request(20)).claims
        assert claim.id == job_id
        backend._crowd.met(0, is_met=crowded)
        assert backend.cycle("me", [completed(claim)], request(20)).refused == ()


def plans_of_prepared_cycles():
    """Have Postgres explain, and so do, what was prepared; a rollback would have the driver forget it."""
    given = {"owner": "me", "limit": 10, "queues": sorted(QUEUES), "types": sorted(request().types), "lease": 60.0}
    given |= {
        "leases": "{}",
        "completions": '{"unknown 1": {"id": "unknown", "fence": 1, "owner": "me", "result": null}}',
    }
    places = {}
    for completing in (False, True):
        for by_group in (False, True):
            kind = {"completing": completing, "by_group": by_group, "known": False, "sparing": False}
            text = cycle_statement(**kind, prepared=True).replace("@now", NOW)
            places[re.sub(r"%\(\w+\)s", "$", text)] = list(dict.fromkeys(re.findall(r"%\((\w+)\)s", text)))
    plans = []
    with connections["postgres"].cursor() as cursor:
        cursor.execute("SELECT name, statement FROM pg_prepared_statements")
        for name, text in cursor.fetchall():
            names = places.pop(re.sub(r"\$\d+", "$", text))
            marks = ", ".join(["%s"] * len(names))
            values = [given[one] for one in names]
            cursor.execute(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) EXECUTE {name} ({marks})", values)
            plans.append((name, text, cursor.fetchone()[0][0]["Plan"]))
    assert places == {}
    return plans


@pytest.mark.postgres
@pytest.mark.parametrize("crowd", CROWDS, ids=lambda crowd: crowd.__name__)
def test_a_cycle_prepared_on_an_empty_table_serves_a_full_one(fresh, crowd):
    fresh("postgres")
    backend = make_sql_backend("postgres", None)
    backend.owns_session = True
    prepare_cycles(backend)
    crowd("postgres", MANY)
    backend.operator.pause(Scope.QUEUE, "stopped")
    for analysed in (False, True):
        if analysed:
            with connections["postgres"].cursor() as cursor:
                vacuum(cursor)
        plans = plans_of_prepared_cycles()
        assert most_rows(plans) < MANY / 50
        assert walks(plans, few=10 * 64) == set()  # so many of each of ten groups
        assert claims_by_other_ranges(plans) == []


# Both


def test_expired_jobs_at_the_head_do_not_hold_up_the_ones_behind(queue):
    put_all(queue, *(draft(expires_at=queue.now() - timedelta(seconds=1)) for _ in range(30)))
    behind = put(queue)
    assert [claim.id for claim in take(queue, 10)] == [behind]
