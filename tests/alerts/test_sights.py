"""Tests of sights: what an alert says is safe to send, and its key stays the same while its numbers change."""

from __future__ import annotations

from datetime import timedelta

import pytest

from jobqueue.alerts.sights import facts
from jobqueue.observe.health import Cause, Finding, Level, Place
from jobqueue.observe.health.finding import WithheldJobs
from jobqueue.policy.redaction import REDACTED
from jobqueue.records import Limit, LimitKind, LimitUse, Scope, StoredLimit
from jobqueue.testing.clock import NOON

HOSTILE = "password=hunter2\nBcc: x"


@pytest.mark.parametrize("place", [Place.QUEUES, Place.RUNNING_JOBS])
def test_what_an_alert_says_about_a_limit_is_redacted_and_in_one_line(place):
    limit = Limit(Scope.TYPE, f"a {HOSTILE}", LimitKind.CONCURRENCY, 1, key="account")
    use = LimitUse(limit, f"b {HOSTILE}", 1, running=(f"c {HOSTILE}",), since=NOON)
    stored = StoredLimit(limit, f"d {HOSTILE}", f"e {HOSTILE}", NOON - timedelta(days=1))
    withheld = WithheldJobs("default", "resize", NOON, use, stored)
    told = facts(Finding(level=Level.WARNING, cause=Cause.LIMIT_USED_UP, place=place, limit=withheld), NOON).sentence
    assert "hunter2" not in told
    assert "\n" not in told
    assert REDACTED in told
    assert "with account b password" in told
