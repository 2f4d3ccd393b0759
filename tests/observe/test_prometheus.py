"""Tests of what Prometheus reads."""

from __future__ import annotations

import math
import socket
import sys
from datetime import timedelta

import pytest
from django.db import connections
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_openmetrics
from prometheus_client.parser import text_string_to_metric_families

from jobqueue import control
from jobqueue.backends.memory import MemoryBackend
from jobqueue.clock import SYSTEM
from jobqueue.handlers.registry import registry
from jobqueue.observe import views
from jobqueue.observe.prometheus.exposition import exposition
from jobqueue.observe.prometheus.names import OTHER, Names, label
from jobqueue.policy.histogram import bucket
from jobqueue.records import MOST_GROUPS, Lengths, Limit, LimitKind, Scope, Tally
from jobqueue.testing.contract.harness import draft, put, put_all, take_one
from tests.conftest import ON_SQLITE
from tests.observe.conftest import TOKEN

OPENMETRICS = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5"


def samples(text, read=text_string_to_metric_families):
    """Read an answer as Prometheus does: each value by its name and labels, which come once."""
    found = {}
    for family in read(text):
        assert family.documentation
        for one in family.samples:
            key = one.name, tuple(sorted(one.labels.items()))
            assert key not in found
            found[key] = one.value
    return found


def value(found, name, /, **labels):
    return found.get((f"jobqueue_{name}", tuple(sorted(labels.items()))))


@pytest.fixture
def scrape(monitor):
    """A function that scrapes."""

    def ask(**headers):
        answer = monitor.get("/metrics/", **headers)
        assert answer.status_code == 200, answer.content
        return samples(answer.content.decode())

    return ask


def test_jobs_are_told_apart_by_queue_and_type(scrape, queue, worker, dead_letter):
    worker(busy=3)
    put_all(queue, draft("send_welcome", queue="mail"), draft("send_welcome", queue="mail", delay=timedelta(hours=1)))
    put(queue, "resize_image", queue="images")
    take_one(queue, types=frozenset({"resize_image"}))
    dead_letter()
    found = scrape()
    mail, images = {"queue": "mail", "type": "send_welcome"}, {"queue": "images", "type": "resize_image"}
    assert [value(found, name, **mail) for name in ("jobs_waiting", "jobs_delayed", "jobs_active")] == [1, 1, 0]
    assert [value(found, name, **images) for name in ("jobs_waiting", "jobs_delayed", "jobs_active")] == [0, 0, 1]
    assert 0 < value(found, "oldest_due_age_seconds", **mail) < 60
    assert value(found, "dead_letters", queue="default", type="send_welcome") == 1
    assert value(found, "workers", state="running") == 1
    assert (value(found, "worker_slots"), value(found, "worker_slots_busy")) == (10, 3)


def test_attempts_are_counted_by_outcome_and_length(scrape, queue):
    ran, waited = Lengths({bucket(0.05): 6, bucket(20.0): 2, bucket(4_000.0): 1}, 4_040.3), Lengths({0: 9}, 0.1)
    one = Tally("mail", "send_welcome", completed=5, retried=1, dead_lettered=1, stopped=1, lost=1, ran=ran)
    assert queue.metrics.add(queue.now(), [one._replace(waited=waited, attempts=Lengths({1: 5, 4: 2}, 13))])
    found, name = scrape(), {"queue": "mail", "type": "send_welcome"}
    outcomes = ("completed", "retried", "dead_lettered", "stopped", "lost")
    assert [value(found, "attempts_total", **name, outcome=one) for one in outcomes] == [5, 1, 1, 1, 1]
    bounds = ("0.1", "1.0", "10.0", "60.0", "300.0", "+Inf")
    assert [value(found, "job_duration_seconds_bucket", **name, le=one) for one in bounds] == [6, 6, 6, 8, 8, 9]
    assert value(found, "job_duration_seconds_sum", **name) == 4_040.3
    assert value(found, "job_wait_seconds_bucket", queue="mail", le="0.01") == 9
    tries = [value(found, "job_attempts_bucket", queue="mail", le=one) for one in ("1.0", "3.0", "5.0", "+Inf")]
    assert tries == [5, 5, 7, 7]
    assert value(found, "job_attempts_sum", queue="mail") == 13


def test_queues_that_somebody_knows_are_zero_rather_than_absent(scrape, worker, settings):
    settings.JOBQUEUE = settings.JOBQUEUE | {"QUEUES": {"bounded": {"capacity": 5}, "import.*": {"capacity": 5}}}
    worker(queues=("served",))
    control.pause(Scope.QUEUE, "closed")
    found = scrape()
    for name in ("bounded", "served", "closed"):
        assert value(found, "jobs_waiting", queue=name, type=OTHER) == 0
        assert value(found, "attempts_total", queue=name, type=OTHER, outcome="completed") == 0
        assert value(found, "job_wait_seconds_count", queue=name) == 0
    assert [value(found, "queue_paused", queue=name) for name in ("closed", "served")] == [1, 0]
    assert [value(found, "queue_workers", queue=name) for name in ("closed", "served")] == [0, 1]
    assert (value(found, "queue_capacity", queue="bounded"), value(found, "queue_capacity", queue="served")) == (
        5,
        None,
    )
    assert not any("*" in text for _name, labels in found for _label, text in labels)
    assert value(found, "jobs_waiting", queue="default", type="send_welcome") == 0
    assert value(found, "schedules_late") == 0


def test_due_jobs_that_no_worker_takes_are_unserved(scrape, queue, worker):
    put_all(queue, draft("send_welcome", queue="mail"), draft("resize_image", queue="mail"))
    assert value(scrape(), "jobs_unserved", queue="mail") == 2
    worker(types=("resize_image",))
    assert value(scrape(), "jobs_unserved", queue="mail") == 1
    control.pause(Scope.TYPE, "send_welcome")
    assert value(scrape(), "jobs_unserved", queue="mail") == 0


def test_limits_show_their_use(scrape, queue):
    control.set_limit(Limit(Scope.TYPE, "send_welcome", LimitKind.CONCURRENCY, 2))
    put(queue, "send_welcome")
    take_one(queue, types=frozenset({"send_welcome"}))
    name = {"scope": "type", "name": "send_welcome", "kind": "concurrency", "per_seconds": "0", "key": ""}
    found = scrape()
    assert [value(found, one, **name) for one in ("limit", "limit_in_use", "limit_values_used_up")] == [2, 1, 0]


def test_an_emptied_queue_is_zero_at_the_next_scrape(scrape, queue):
    ids = put_all(queue, draft("send_welcome", queue="mail"))
    queue.metrics.add(queue.now(), [Tally("mail", "send_welcome", completed=1)])
    assert value(scrape(), "jobs_waiting", queue="mail", type="send_welcome") == 1
    queue.operator.purge(ids)
    assert value(scrape(), "jobs_waiting", queue="mail", type="send_welcome") == 0
    assert value(scrape(), "oldest_due_age_seconds", queue="mail", type="send_welcome") == 0


def test_a_queue_and_type_have_less_than_twenty_series(scrape, queue):
    queue.metrics.add(queue.now(), [Tally("letters", "send_letter", completed=1)])
    found = scrape()
    assert sum(dict(labels).get("queue") == "letters" and "type" in dict(labels) for _name, labels in found) == 18


@ON_SQLITE
def test_two_thousand_types_are_folded_and_none_is_lost(scrape, queue):
    put_all(queue, *(draft(f"tenant-{number:04}", queue="parcels") for number in range(2_000)))
    for begin in range(0, 2_000, 25):
        some = [Tally("parcels", f"tenant-{number:04}", completed=1) for number in range(begin, begin + 25)]
        assert queue.metrics.add(queue.now(), some)
    found = scrape()
    for name in ("jobs_waiting", "attempts_total"):
        several = {labels: one for (family, labels), one in found.items() if family == f"jobqueue_{name}"}
        assert sum(several.values()) == 2_000
        assert len({dict(labels)["type"] for labels in several}) == MOST_GROUPS + 1
    assert value(found, "kinds_folded") == 2_000 + len(list(registry)) - MOST_GROUPS
    assert len(found) < 20 * MOST_GROUPS + 100


@ON_SQLITE
def test_openmetrics_is_answered_to_who_accepts_it(monitor):
    answer = monitor.get("/metrics/", Accept=OPENMETRICS)
    assert answer.headers["Content-Type"].startswith("application/openmetrics-text; version=1.0.0")
    assert samples(answer.content.decode(), read_openmetrics)
    plain = monitor.get("/metrics/")
    assert plain.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    assert "no-store" in plain.headers["Cache-Control"]
    assert monitor.get("/metrics/", Accept="application/openmetrics-text;version=nonsense").status_code == 200


@ON_SQLITE
@pytest.mark.parametrize("token", ["", "a token of another", TOKEN + "é"])
def test_a_wrong_token_reads_no_metrics(monitor, token):
    answer = monitor.get("/metrics/", token=token)
    assert (answer.status_code, b"jobqueue_" in answer.content) == (403, False)
    assert monitor.client.get(f"/metrics/?token={TOKEN}").status_code == 403


@pytest.fixture
def away(alias, monkeypatch):
    """A database of this test that doesn't answer: a file in no folder, or a server that takes calls and is silent."""
    connection = connections[alias]
    connection.close()
    with socket.create_server(("127.0.0.1", 0)) as silent:
        there = {"NAME": "/nowhere/jobs.sqlite3"}
        if connection.vendor == "postgresql":
            there = {"HOST": "127.0.0.1", "PORT": str(silent.getsockname()[1])}
        with monkeypatch.context() as patched:
            patched.setattr(views, "PATIENCE", 2.0)
            patched.setattr(connection, "settings_dict", connection.settings_dict | there)
            yield
    connection.close()


def test_a_database_that_is_away_gets_no_figures_but_a_sentence_in_time(monitor, away):
    began = SYSTEM.monotonic()
    answer = monitor.get("/metrics/")
    assert (answer.status_code, answer.content) == (
        503,
        b"The database of the queue cannot be read: OperationalError.\n",
    )
    assert SYSTEM.monotonic() - began < 5


def test_a_scrape_leaves_the_connection_as_it_was(monitor, alias):
    connection = connections[alias]
    connection.ensure_connection()
    given, driver, before = connection.settings_dict, connection.connection, vars(connection).get("wait")
    assert monitor.get("/metrics/").status_code == 200
    connection.ensure_connection()
    assert (connection.settings_dict, vars(connection).get("wait")) == (given, before)
    assert "wait" not in getattr(driver, "__dict__", {})


@ON_SQLITE
def test_without_the_extra_one_sentence_says_what_to_install(monitor, monkeypatch):
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    for name in [name for name in sys.modules if name.startswith("jobqueue.observe.prometheus.")]:
        monkeypatch.delitem(sys.modules, name)
    answer = monitor.get("/metrics/")
    assert (answer.status_code, b"django-jobqueue[prometheus]" in answer.content) == (501, True)


HOSTILE = st.text(st.characters(), max_size=500) | st.sampled_from(
    ["", OTHER, "a\nb", 'a"b', "a\\", "\0", "\ud800", "x" * 500, "a} 1\n# EOF\n", "\x85", "\u2028"]
)


@settings(max_examples=25)
@given(queue=HOSTILE, kind=HOSTILE, second=HOSTILE)
def test_no_name_breaks_the_format(queue, kind, second):
    assume(queue and kind)
    backend = MemoryBackend()
    backend.metrics.add(backend.now(), [Tally(queue, kind, completed=3), Tally(queue, second, lost=4)])
    put_all(backend, draft(kind, queue=queue), draft(second, queue=kind))
    for accept, read in (("", text_string_to_metric_families), (OPENMETRICS, read_openmetrics)):
        text, _content_type = exposition(backend, lambda _backend: None, accept)
        found = samples(text.decode(), read)
        attempts = {labels: one for (name, labels), one in found.items() if name == "jobqueue_attempts_total"}
        assert sum(attempts.values()) == 7
        assert sum(one for (name, _), one in found.items() if name == "jobqueue_jobs_waiting") == 2
        assert not any(math.isnan(one) for one in found.values())
        assert b"\0" not in text


def test_names_are_chosen_in_order_and_counted():
    kinds = [("mail", f"type-{number:03}") for number in range(MOST_GROUPS)]
    names = Names.of(["idle"], [("z", "first")], kinds)
    assert names.kind("z", "first") == ("z", "first")
    assert names.kind(*kinds[-1]) == ("mail", OTHER)
    assert (names.folded_kinds, names.folded_queues) == (1, 0)
    assert names.queues == {"idle", "mail", "z"}
    many = Names.of([], [(f"q{number:03}", "x") for number in range(MOST_GROUPS + 5)])
    assert many.folded_queues == 5
    assert many.kind(f"q{MOST_GROUPS + 1:03}", "x") == (OTHER, OTHER)
    assert label("\n") != "\n"
