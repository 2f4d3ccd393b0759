"""Fixtures of the incidents: both faces of the queue's health, and jobs that have waited for long."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from functools import partial

import pytest

from jobqueue.alerts import evaluate
from jobqueue.models import Job, Worker
from jobqueue.observe.health import Cause
from jobqueue.records import Tally
from jobqueue.records.alert import News
from jobqueue.testing.contract.harness import put
from tests.admin.conftest import sign_in  # noqa: F401 - a fixture
from tests.cli.conftest import process, run, worker  # noqa: F401 - fixtures
from tests.worker.conftest import jobs, ledger, start_worker  # noqa: F401 - fixtures
from tests.worker.harness import until

DASHBOARD = "/admin/jobqueue/dashboard/"
#: How soon both faces name an incident that happens while they are looked at.
WITHIN = 15.0
#: Seconds between two looks at the dashboard.
PAUSE = 0.2


@pytest.fixture
def faces(queue, sign_in, run):  # noqa: F811
    """A function that returns what the dashboard says, what status says, and its JSON."""
    client = sign_in("view_job").client

    def look():
        panels = {one.name: one.body for one in client.get(DASHBOARD).context["panels"]}
        page = [line for line in panels["findings"].splitlines() if 'class="jq-sign"' in line and "jq-well" not in line]
        text = [line for line in run("status").out.splitlines() if line.startswith(("error:", "warning:", "notice:"))]
        return page, text[_heads(text) :], run("status", "--json")

    return look


def _heads(text):
    """The first line sums up, and has the level of the worst problem."""
    return 1 if text and " queued, " in text[0] else 0


@pytest.fixture(autouse=True)
def alerts(queue, settings):
    """How often each alert fired and ended, by its key. It has no channel, because no worker here would deliver."""
    rules = [{"rule": one.value, "for": 0, "resolve_after": 0} for one in Cause]
    settings.JOBQUEUE = settings.JOBQUEUE | {"ALERTS": {"rules": rules}}
    counts = {News.FIRED: Counter(), News.RESOLVED: Counter()}

    def look():
        for one in evaluate(queue).told:
            counts[one.news][one.after.key] += 1
        return counts

    return look


def _of(counts, cause):
    return {key: count for key, count in counts.items() if key.partition(":")[0] == cause.value}


@pytest.fixture
def named(faces, alerts):
    """Assert that both faces name an incident within seconds, each on one line; return the exit code of status."""

    def check(words, cause):
        def is_named():
            page, text, told = faces()
            counts = [sum(words in line for line in lines) for lines in (page, text)]
            causes = [one["cause"] for one in told.json["findings"]]
            return told.code if (counts, causes.count(cause.value)) == ([1, 1], 1) else None

        def missed():
            page, text, _told = faces()
            return f"{words!r} in\n" + "\n".join((*page, *text))

        (code,) = until(lambda: (found := is_named()) is not None and (found,), WITHIN, missed, PAUSE)
        levels = {one["cause"]: one["level"] for one in faces()[2].json["findings"]}
        alerts()
        fired = _of(alerts()[News.FIRED], cause)
        assert set(fired.values()) == (set() if levels[cause.value] == "notice" else {1})
        return code

    return check


@pytest.fixture
def over(faces, alerts):
    """Assert that neither face names a cause any more."""

    def check(*causes):
        names = {one.value for one in causes}

        def is_over():
            return names.isdisjoint(one["cause"] for one in faces()[2].json["findings"])

        until(is_over, WITHIN, lambda: f"the end of {names} in {faces()[1]}", PAUSE)
        alerts()
        counts = alerts()
        for one in causes:
            assert _of(counts[News.RESOLVED], one) == _of(counts[News.FIRED], one)

    return check


@pytest.fixture
def due(queue):
    """A function that enqueues a job that has been due for a minute, or as long as is said."""

    def make(job_type="send_welcome", ago=timedelta(minutes=1), **values):
        return put(queue, job_type, scheduled_at=queue.now() - ago, **values)

    return make


@pytest.fixture
def change(alias):
    """Functions that change the rows of jobs and workers, as time or another program would."""
    return {model: partial(_update, model.objects.using(alias)) for model in (Job, Worker)}


def _update(rows, wanted, **values):
    assert rows.filter(**wanted).update(**values)


@pytest.fixture
def counted(queue):
    """A function that counts attempts as a worker does."""

    def add(job_type="send_welcome", place="default", ago=timedelta(0), **ends):
        assert queue.metrics.add(queue.now() - ago, [Tally(place, job_type, **ends)])

    return add
