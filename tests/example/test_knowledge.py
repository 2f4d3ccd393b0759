"""Tests of the knowledge tool: hooks type its commands, and a worker runs them in that order."""

from __future__ import annotations

import re

import pytest

pytestmark = pytest.mark.timeout(180)

#: What hooks do, in one process without a terminal.
TYPE = """
from django.core.management import execute_from_command_line
for words in {lines!r}:
    execute_from_command_line(["manage.py", *words])
"""
#: More facts than four fifths of the queue's capacity.
MANY = 85


def typed(site, *lines):
    """Type commands one after another, as hooks do, and return what they printed."""
    return site.manage("shell", "-v", "0", "-c", TYPE.format(lines=lines))


def learn(topic, number):
    return "learn", topic, f"fact number {number} about {topic}"


def worked(site):
    """Process the queue by hand."""
    return site.manage("runworker", "--drain", "--queue", "knowledge", "--concurrency", "8", "--skip-checks")


def facts(site, topic):
    return site.value(f"SELECT count(*) FROM knowledge_fact WHERE topic = '{topic}'")


def test_commands_of_hooks_run_in_their_order_and_what_may_be_parallel_is(site):
    told = typed(
        site,
        *(learn("rain", number) for number in range(MANY)),
        ("summarise",),
        ("forget", "snow"),
        *(learn("rain", number) for number in range(MANY, MANY + 4)),
        learn("snow", 1),
    )
    assert told == ""  # hooks hear nothing
    assert facts(site, "rain") == 0

    assert "knowledge" in site.manage("jobqueue", "status", status=1)
    typed(site, *(learn("sun", number) for number in range(100 - MANY)))
    assert "knowledge" in site.manage("jobqueue", "status", status=2)

    worked(site)
    assert site.rows("SELECT topic, facts FROM knowledge_summary") == [("rain", MANY)]
    assert (facts(site, "rain"), facts(site, "snow"), facts(site, "sun")) == (MANY + 4, 1, 100 - MANY)


def test_an_explicit_call_names_its_job_and_a_dead_one_is_retried_by_hand(site):
    told = typed(site, ("learn", "wind", "blows", "--async"))
    assert re.fullmatch(r"Enqueued as job \w{26}\.\n", told)
    typed(site, ("learn", "wind", ""), ("learn", "wind", "turns"))
    site.write("UPDATE job_queue SET max_retries = 0 WHERE status = 'queued'")  # the usual waits are 10, 20 and 40 s
    worked(site)
    assert facts(site, "wind") == 2  # the command without a text held nothing up

    job_id = site.value("SELECT id FROM job_queue WHERE status = 'dead_letter'")
    assert "the text is empty" in site.manage("jobqueue", "show", job_id)
    site.manage("jobqueue", "retry", job_id)
    assert site.value(f"SELECT status FROM job_queue WHERE id = '{job_id}'") == "queued"
