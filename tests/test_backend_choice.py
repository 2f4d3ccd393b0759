"""Tests of the choice of the backend by the settings."""

from __future__ import annotations

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.core.management import CommandError, call_command
from django.db import connections

import jobqueue
from jobqueue import backends
from jobqueue.backends.memory import MemoryBackend
from jobqueue.ids import new_owner
from jobqueue.records import ClaimRequest
from tests.app.jobs import send_welcome


def test_the_databases_vendor_chooses(alias, queue):
    assert type(queue).__name__ == {"default": "SqliteBackend", "postgres": "PostgresBackend"}[alias]
    assert backends.current() is queue


def test_a_dotted_path_chooses_another(settings):
    settings.JOBQUEUE = {"BACKEND": "jobqueue.backends.memory.MemoryBackend"}
    receipt = send_welcome.enqueue(7)
    assert isinstance(backends.current(), MemoryBackend)
    assert jobqueue.get(receipt.id).payload == {"user_id": 7, "language": "en"}


def test_a_database_of_another_vendor_is_refused_in_one_sentence(settings, monkeypatch):
    monkeypatch.setattr(connections["default"], "vendor", "oracle")
    settings.JOBQUEUE = {"DATABASE": "default"}
    with pytest.raises(ImproperlyConfigured, match="runs on sqlite and on postgresql"):
        backends.current()


def test_a_setting_that_will_not_do_stops_the_caller(settings):
    settings.JOBQUEUE = {"MAX_PAYLOAD_BYTES": "much"}
    with pytest.raises(ImproperlyConfigured, match="MAX_PAYLOAD_BYTES"):
        send_welcome.draft(7)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"DATABSE": "default"}, r"^JOBQUEUE has the unknown key 'DATABSE'\. Did you mean 'DATABASE'\?$"),
        ({"DATABASE": "defualt"}, r"^JOBQUEUE names the database 'defualt', .+\. Did you mean 'default'\?$"),
        ({"BACKEND": "x.y.Z"}, r"^JOBQUEUE\['BACKEND'\] is 'x.y.Z', which cannot be imported: "),
    ],
)
def test_settings_are_judged_where_the_queue_is_first_used(settings, given, sentence):
    settings.JOBQUEUE = given
    for use in (backends.current, lambda: send_welcome.enqueue(7), lambda: call_command("jobqueue", "list")):
        with pytest.raises((ImproperlyConfigured, CommandError), match=sentence):
            use()


def test_a_database_to_relay_to_that_does_not_exist_is_one_sentence(settings):
    settings.JOBQUEUE = {"RELAY_TO": "defualt"}
    with pytest.raises(ImproperlyConfigured, match="Did you mean 'default'"):
        backends.shared()


def test_no_two_workers_have_one_name(queue):
    names = {new_owner() for _ in range(100)}
    assert len(names) == 100
    send_welcome.enqueue(7)
    name = names.pop()
    (claim,) = queue.cycle(name, (), ClaimRequest(limit=1, types=frozenset({"send_welcome"}))).claims
    assert queue.jobs.get(claim.id).lease_owner == name
    assert name.count(":") == 2
