"""Tests of tables from before the typed columns: the migration accepts any content, and workers the result."""

from __future__ import annotations

import pytest
from django.core.management import call_command

from jobqueue.models import Attempt, Job
from tests.attacks import forging
from tests.attacks.drains import forge, trouble_with
from tests.attacks.hostile import LARGE, STATES, job_row, row_of, vandal
from tests.conftest import ON_SQLITE

BEFORE = "0008"
OF_THE_SIMPLE_SITE = {"attempts": 1, "max_retries": 4, "priority": 2, "payload": '{"x": [1, "é"]}', "tenant": "acme"}


@pytest.fixture
def foreign(alias, settings):
    """A foreign program's connection to tables as they were before."""
    settings.JOBQUEUE = {"DATABASE": alias}
    migrate(alias, BEFORE)
    with vandal(alias) as found:
        yield found
        migrate(alias)  # first, because the tables of before are not all that are cleared
        found.clear()


def migrate(alias, *names):
    call_command("migrate", "jobqueue", *names, database=alias, verbosity=0)


def singles(state):
    return [forging.single(*one) for one in forging.every_single() if one[3] == state and one[2] not in LARGE]


@ON_SQLITE
@pytest.mark.parametrize("state", ["queued", "expired", ""])
def test_whatever_is_in_them_they_migrate_and_workers_go_on(foreign, alias, state):
    stored, _ = forge(foreign, singles(state))
    assert len(stored) > 100
    migrate(alias)
    assert trouble_with(foreign, {key: one for key, one in stored.items() if key[1] in foreign.jobs()}) == ""


@ON_SQLITE
def test_nothing_is_lost_of_the_jobs(foreign, alias):
    forge(foreign, [one for state in STATES for one in singles(state)])
    before = {key: row["status"] for key, row in foreign.jobs().items()}
    migrate(alias)
    after = {key: row["status"] for key, row in foreign.jobs().items()}
    assert after.keys() == before.keys()
    changed = {(before[key], after[key]) for key in before if before[key] != after[key]}
    assert changed == {("queued", "dead_letter"), ("in_progress", "dead_letter")}
    reasons = foreign.run("SELECT DISTINCT error IS NULL FROM job_queue WHERE end_reason = 'unreadable'")
    assert reasons == [(0,)]


def test_what_is_sound_stays_as_it_was(foreign, alias):
    sound = [job_row(state, **OF_THE_SIMPLE_SITE) for state in STATES if state != "failing"]
    for row in sound:
        foreign.store("job_queue", row)
        foreign.store("job_queue_attempt", row_of("job_queue_attempt") | {"job_id": row["id"]})
    foreign.store("job_queue_pause", row_of("job_queue_pause"))
    columns = ", ".join(sorted(sound[0] | sound[-1]))
    kept = f"SELECT {columns} FROM job_queue ORDER BY id"
    before, paused = foreign.run(kept), foreign.run("SELECT * FROM job_queue_pause")
    migrate(alias)
    assert foreign.run(kept) == before
    assert foreign.run("SELECT * FROM job_queue_pause") == paused
    assert Attempt.objects.using(alias).count() == len(sound)
    assert all(job.payload == {"x": [1, "é"]} for job in Job.objects.using(alias))


@ON_SQLITE
def test_a_number_used_up_leaves_room_afterwards(foreign, alias):
    """SQLite counts on from the largest there ever was: before, the table took no other row."""
    row = row_of("job_queue_attempt")
    foreign.store("job_queue_attempt", {**row, "id": 2**63 - 1})
    migrate(alias)
    foreign.store("job_queue_attempt", {**row, "fence": 2})
    assert Attempt.objects.count() == 2


@ON_SQLITE
def test_an_id_that_is_no_text_makes_way_for_one(foreign, alias):
    foreign.run("PRAGMA ignore_check_constraints = 1")  # of old tables, the id alone had none
    foreign.store("job_queue", job_row() | {"id": b"\x00\xff"})
    foreign.run("PRAGMA ignore_check_constraints = 0")
    migrate(alias)
    job = Job.objects.get()
    assert job.pk.startswith("unreadable-")
    assert (job.status, job.end_reason) == ("dead_letter", "unreadable")
