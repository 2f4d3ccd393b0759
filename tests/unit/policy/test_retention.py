"""Tests of the rules of retention: how they are read, and what is wrong with a rule that isn't."""

from __future__ import annotations

from datetime import timedelta

import pytest

from jobqueue import conf
from jobqueue.policy.retention import Rule, youngest
from jobqueue.policy.retention_rules import read
from jobqueue.states import JobStatus

DAY = timedelta(days=1)


def test_rules_are_read_as_they_are_written():
    given = [
        {"status": "completed", "keep": 86_400},
        {"status": "completed", "type": "resize", "queue": "images", "keep_last": 1_000},
        {"status": "dead_letter", "type": "resize", "keep": None},
    ]
    assert read(given) == (
        Rule(JobStatus.COMPLETED, keep=DAY),
        Rule(JobStatus.COMPLETED, keep_last=1_000, type="resize", queue="images"),
        Rule(JobStatus.DEAD_LETTER, type="resize"),
    )


def test_by_default_a_week_of_completed_jobs_is_kept_and_every_dead_letter():
    rules = read(conf.SETTINGS["RETENTION"].default)
    assert [(rule.status, rule.keep) for rule in rules] == [("completed", 7 * DAY), ("failed", 30 * DAY)]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"completed": DAY}, "it must be a list of dicts, not dict"),
        (["completed"], "rule 1 must be a dict, not str"),
        ([{"status": "complete", "keep": DAY}], "the 'status' of rule 1 is 'complete'. Did you mean 'completed'?"),
        ([{"status": "queued", "keep": DAY}], "the 'status' of rule 1 is 'queued'. Choose one of: "),
        ([{"status": ["completed"], "keep": DAY}], "the 'status' of rule 1 is ['completed']. "),
        ([{"keep": DAY}], "the 'status' of rule 1 is None. Choose one of: completed, dead_letter, failed."),
        ([{"status": "completed", "keeps": DAY}], "rule 1 has the unknown key 'keeps'. Did you mean 'keep'?"),
        ([{"status": "completed"}], "rule 1 needs 'keep' or 'keep_last'; 'keep': None keeps its jobs for ever"),
        ([{"status": "completed", "keep": "7 days"}], "the 'keep' of rule 1 must be seconds or a timedelta, got str"),
        ([{"status": "completed", "keep": -1}], "the 'keep' of rule 1 must not be negative, got -1"),
        (
            [{"status": "completed", "keep_last": -1}],
            "the 'keep_last' of rule 1 must be a whole number of jobs, not -1",
        ),
        ([{"status": "completed", "keep_last": True}], "the 'keep_last' of rule 1 must be a whole number of jobs"),
        ([{"status": "completed", "keep": 1, "type": ""}], "the 'type' of rule 1 must be a name, not ''"),
        (
            [{"status": "completed", "keep": 1, "archive": "old"}],
            "the 'archive' of rule 1 must be the absolute path of a folder, or 'storage:' with a name in STORAGES, not",
        ),
        ([{"status": "completed", "keep": 1}] * 2, "rules 1 and 2 are about the same jobs"),
    ],
)
def test_a_rule_that_is_wrong_says_why(given, said):
    with pytest.raises(ValueError, match=r".") as caught:
        read(given)
    assert str(caught.value).startswith(said)


def test_an_age_protects_young_jobs_unless_a_rule_counts():
    by_age = Rule(JobStatus.COMPLETED, keep=DAY), Rule(JobStatus.FAILED, keep=2 * DAY), Rule(JobStatus.DEAD_LETTER)
    assert youngest(by_age) == DAY
    assert youngest((*by_age, Rule(JobStatus.COMPLETED, keep_last=1, type="resize"))) == timedelta(0)
    assert youngest(()) == timedelta(0)
