"""Tests of `regroup`."""

from __future__ import annotations

from jobqueue.cli.commands import regroup
from jobqueue.models import Job
from jobqueue.testing.contract.harness import put


def fingerprints(queue, *ids):
    found = dict(Job.objects.using(queue.alias).filter(pk__in=ids).values_list("pk", "error_fingerprint"))
    return [found[job_id] for job_id in ids]


def test_dead_letters_are_put_into_the_groups_of_the_current_rule(run, queue, dead_letter):
    first, second = dead_letter(message="disk 1 is full"), dead_letter(message="disk 2 is full")
    other, waiting = dead_letter(message="no route"), put(queue, "send_welcome")
    assert run("regroup", "--dry-run").out == "3 of 3 dead letters would be put into another group.\n"
    assert set(fingerprints(queue, first, second, other)) == {None}
    said = run("regroup")
    assert (said.code, said.out) == (0, "3 of 3 dead letters were put into another group.\n")
    one, same, another, none = fingerprints(queue, first, second, other, waiting)
    assert (one == same, one == another, none) == (True, False, None)
    assert run("regroup").out == "0 of 3 dead letters were put into another group.\n"


def test_a_type_is_enough(run, queue, dead_letter):
    mail, image = dead_letter(), dead_letter("resize_image")
    assert run("regroup", "--type", "resize_image", "--json").json == {
        "verb": "regroup",
        "dry_run": False,
        "dead_letters": 1,
        "regrouped": 1,
    }
    assert [name is None for name in fingerprints(queue, mail, image)] == [True, False]


def test_it_goes_on_from_batch_to_batch(run, queue, dead_letter, monkeypatch):
    monkeypatch.setattr(regroup, "BATCH", 2)
    ids = [dead_letter() for _ in range(5)]
    assert run("regroup").out == "5 of 5 dead letters were put into another group.\n"
    assert None not in fingerprints(queue, *ids)


def test_what_another_program_wrote_is_grouped_by_its_error(run, queue, dead_letter):
    bare = dead_letter()
    queue.operator.purge([bare])
    job_id = put(queue, "send_welcome")
    Job.objects.using(queue.alias).filter(pk=job_id).update(status="dead_letter", error="x" * 10_000)
    assert run("regroup").out == "1 of 1 dead letter were put into another group.\n"
    assert fingerprints(queue, job_id) != [None]


def test_nothing_is_said_to_have_changed_where_nothing_is_dead(run):
    assert run("regroup").out == "0 of 0 dead letters were put into another group.\n"
