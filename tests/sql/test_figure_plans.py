"""Tests of the metrics of one queue, which are read without those of other queues and types."""

from __future__ import annotations

import re
from datetime import timedelta

from django.db import connections, transaction
from django.test.utils import CaptureQueriesContext

from jobqueue.records import Tally
from jobqueue.testing.clock import NOON


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
