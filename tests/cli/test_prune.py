"""Tests of `prune`: what it says, what it deletes, and how it refuses wrong rules."""

from __future__ import annotations

from datetime import timedelta

import pytest

from jobqueue.models import Job
from jobqueue.testing.contract.harness import finish, put, take_one


@pytest.fixture
def old(queue):
    """Two completed jobs that ended eight days ago."""
    ids = [put(queue, "send_welcome") for _ in range(2)]
    for _ in ids:
        finish(queue, take_one(queue, types=frozenset({"send_welcome"})))
    Job.objects.using(queue.alias).filter(pk__in=ids).update(completed_at=queue.now() - timedelta(days=8))
    return ids


@pytest.fixture
def by_number(settings):
    """A rule that doesn't depend on ids, which tell the time at which these jobs were made."""
    settings.JOBQUEUE = {**settings.JOBQUEUE, "RETENTION": [{"status": "completed", "keep": 0, "keep_last": 9}]}


def test_a_dry_run_says_what_the_rules_do_not_keep_and_keeps_it(run, queue, old, by_number, dead_letter):
    dead_letter()
    said = run("prune", "--dry-run", "--json")
    assert (said.code, said.json) == (
        0,
        {
            "verb": "prune",
            "dry_run": True,
            "jobs": 2,
            "groups": [{"status": "completed", "type": "send_welcome", "queue": "default", "jobs": 2}],
        },
    )
    assert all(queue.jobs.get(job_id) for job_id in old)


def test_what_the_rules_do_not_keep_is_deleted(run, queue, old, by_number, dead_letter):
    kept = dead_letter()
    said = run("prune")
    assert (said.code, said.err) == (0, "2 jobs were deleted.\n")
    assert said.out.splitlines()[1].split() == ["completed", "send_welcome", "default", "2"]
    assert [bool(queue.jobs.get(job_id)) for job_id in (*old, kept)] == [False, False, True]
    assert run("prune").err == "0 jobs were deleted.\n"


def test_a_wrong_rule_is_named_and_deletes_nothing(run, queue, old, settings):
    settings.JOBQUEUE = {**settings.JOBQUEUE, "RETENTION": [{"status": "complete", "keep": 0}]}
    said = run("prune")
    assert said.code == 3
    assert "the 'status' of rule 1 is 'complete'. Did you mean 'completed'?" in said.err
    assert all(queue.jobs.get(job_id) for job_id in old)
