"""Tests as a project writes them with the plugin's fixtures, which ``test_plugin`` runs with pytest."""

from __future__ import annotations

import os

import pytest

from tests.documented.shelf.jobs import write_and_follow, write_note
from tests.documented.shelf.models import Note


def notes():
    return sorted(Note.objects.values_list("text", flat=True))


def test_the_queue_is_used_inside_an_ordinary_test(jobqueue):
    write_and_follow.enqueue(text="one")
    jobqueue.assert_enqueued(write_and_follow, text="one")
    jobqueue.drain()
    assert notes() == ["one", "one, enqueued", "one, followed"]


@pytest.mark.parametrize("turn", [1, 2])
def test_each_test_begins_with_an_empty_queue(jobqueue, turn):
    assert jobqueue.enqueued_jobs() == []
    write_note.enqueue(text="left behind")


@pytest.mark.parametrize("turn", [1, 2])
def test_each_test_begins_with_an_empty_queue_in_memory(settings, request, turn):
    settings.JOBQUEUE = {"BACKEND": "jobqueue.backends.memory.MemoryBackend"}
    jobqueue = request.getfixturevalue("jobqueue")
    assert jobqueue.enqueued_jobs() == []
    write_note.enqueue(text="left behind")


def test_time_is_the_tests(jobqueue_clock):
    write_note.using(delay=3600).enqueue(text="later")
    assert (jobqueue_clock.advance(minutes=59), notes()) == ([], [])
    jobqueue_clock.advance(minutes=1)
    assert notes() == ["later"]


def test_callbacks_are_captured(jobqueue, django_capture_on_commit_callbacks):
    from django.db import transaction

    with jobqueue.run_inline():
        with django_capture_on_commit_callbacks(execute=True), transaction.atomic():
            write_note.enqueue(text="one")
            assert notes() == []
        assert notes() == ["one"]


@pytest.mark.skipif(os.environ.get("JOBQUEUE_TEST_MEMORY") == "1", reason="another process cannot see it")
def test_a_worker_runs_what_is_committed(jobqueue_worker):
    assert write_note.enqueue(text="one").result(timeout=30) > 0
    assert notes() == ["one"]
    assert "Job completed" in jobqueue_worker.output


@pytest.mark.skipif(os.environ.get("JOBQUEUE_TEST_MEMORY") != "1", reason="another process can see it")
@pytest.mark.django_db(transaction=True)
def test_a_worker_that_could_not_see_the_database_is_refused(request):
    with pytest.raises(Exception, match=r"cannot see the database 'default'.+\['TEST'\] = "):
        request.getfixturevalue("jobqueue_worker")
