"""Tests of the metrics of one queue, which are read without those of other queues and types."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.db import connections, transaction
from django.test.utils import CaptureQueriesContext

from jobqueue.models import Metric
from jobqueue.records import Scope, Tally
from jobqueue.testing.clock import NOON
from tests.conftest import make_sql_backend
from tests.sql.test_plans import Explained, undone


def plan_of(alias, statement):
    """Read how a database would go about it, if it does not take a small table for nothing."""
    with transaction.atomic(using=alias), connections[alias].cursor() as cursor:
        if connections[alias].vendor == "postgresql":
            cursor.execute("SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off")
        cursor.execute(f"EXPLAIN {'' if connections[alias].vendor == 'postgresql' else 'QUERY PLAN'} {statement}")
        return "\n".join(str(row[-1]) for row in cursor.fetchall())


def test_figures_of_one_queue_are_looked_for_by_its_name_within_their_window(queue):
    for minute in range(5):
        some = [Tally(name, f"type-{number}", completed=1) for name in ("images", "mail") for number in range(20)]
        assert queue.metrics.add(NOON + timedelta(minutes=minute), some)
    with CaptureQueriesContext(connections[queue.alias]) as queries:
        assert len(queue.metrics.stretches(60, NOON + timedelta(minutes=2), queue="images")) == 3
    (statement,) = [one["sql"] for one in queries if one["sql"].startswith("SELECT")]
    plan = plan_of(queue.alias, statement)
    if connections[queue.alias].vendor == "postgresql":
        assert "Index Scan using job_queue_metric_stretch" in plan
        (condition,) = [line for line in plan.splitlines() if "Index Cond" in line]
        assert all(column in condition for column in ("span", "begins_at", "queue", "type"))
        assert "Filter" not in plan
    else:
        assert re.fullmatch(r"SEARCH job_queue_metric USING INDEX \w+ \(span=\? AND begins_at>\?\)", plan)


@pytest.mark.postgres
def test_the_sums_of_a_span_are_read_by_its_index_alone(fresh):
    """Without a hint, Postgres expects many hours since yesterday, because there are many stretches since then."""
    fresh("postgres")
    backend = make_sql_backend("postgres", None)
    rows = [(60, minute) for minute in range(3_000)] + [(3600, 60 * hour) for hour in range(24)]
    Metric.objects.using("postgres").bulk_create(
        Metric(span=span, begins_at=NOON + timedelta(minutes=minute), queue="images", type=f"type-{number}")
        for span, minute in rows
        for number in range(5)
    )
    with connections["postgres"].cursor() as cursor:
        cursor.execute("VACUUM ANALYZE job_queue_metric")
    explained = Explained("postgres")
    with undone("postgres"), explained("totals"):
        assert len(backend.metrics.totals(Scope.TYPE, 3600, NOON)) == 5
    plans = [str(plan) for _name, sql, plan in explained.plans if "job_queue_metric" in sql]
    assert ["Seq Scan" in plan for plan in plans] == [False, False]
