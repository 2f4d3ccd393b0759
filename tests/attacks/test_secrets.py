"""Tests with secrets in payloads, errors, local variables and connection strings, which must never leak."""

from __future__ import annotations

import json
import logging
import sqlite3
import sys

import pytest
from django.db import DatabaseError, connections

from jobqueue.observe.logs import JsonFormatter, PlainFormatter
from jobqueue.testing.contract.harness import put
from tests.app.worker_jobs_attacks import log_in
from tests.conftest import ON_SQLITE

SECRETS = {"password": "canary-hunter2", "api_key": "canary-k-4711", "url": "amqp://ada:canary-of-ada@mq.internal/"}
CANARIES = ("canary-hunter2", "canary-k-4711", "canary-of-ada")
STAFF = ((), ("retry_job", "cancel_job", "purge_job"), ("view_job",))


def payload(how):
    account = {"password": SECRETS["password"], "headers": [{"name": "X-Api-Key", "value": SECRETS["api_key"]}]}
    return {"how": how, "account": account, "url": SECRETS["url"]}


def canaries_in(text):
    return [one for one in CANARIES if one in text]


@pytest.mark.parametrize("log_format", ["text", "json"])
def test_no_secret_comes_out_of_a_worker_a_command_or_a_page(
    start_worker, jobs, queue, sql, run, sign_in, caplog, log_format
):
    with caplog.at_level("DEBUG", "jobqueue"):
        done, failed = log_in.enqueue(payload("works")), log_in.enqueue(payload("fails"))
    worker = start_worker("-v", "2", jobqueue={"LOG_FORMAT": log_format})
    jobs.until("completed", done)
    (dead,) = jobs.until("dead_letter", failed)
    assert worker.stop() == 0
    waiting = log_in.using(delay=3_600).enqueue(payload("waits"))
    assert canaries_in(worker.output + caplog.text) == []
    assert dead.id in worker.output
    # In the table the payload is what it was, and progress what the handler said; what we wrote ourselves is clean.
    own = ("error", "end_reason", "error_fingerprint", "result", "context")
    assert canaries_in(json.dumps([[getattr(row, name) for name in own] for row in map(jobs.get, (done, dead))])) == []
    history = [(past.message, past.traceback, past.error_class) for past in jobs.history(dead)]
    assert len(history) == 2
    assert canaries_in(str(history)) == []
    assert "[redacted]" in str(history)
    ids = [done.id, dead.id, waiting.id]
    assert canaries_in(said_by_commands(run, ids)) == []
    for codenames in STAFF:
        assert canaries_in(pages(sign_in(*codenames), ids)) == []
    assert canaries_in(run("show", dead.id, "--reveal").out) == ["canary-hunter2", "canary-k-4711", "canary-of-ada"]


def said_by_commands(run, ids):
    said = [run("status"), run("list"), run("workers")]
    said += [run(verb, job_id, *extra) for verb in ("show", "why") for job_id in ids for extra in ((), ("--json",))]
    said += [run("list", "--json"), run("status", "--json")]
    said.append(run("enqueue", "send_welcome", json.dumps({"user_id": SECRETS["password"], "x": SECRETS["api_key"]})))
    assert all(one.out or one.err for one in said)
    return "".join(one.out + one.err for one in said)


def pages(visitor, ids):
    answers = [visitor.list(), visitor.list("deadletter"), visitor.list(q="canary"), visitor.list(payload="canary")]
    answers += [visitor.page(job_id, model) for job_id in ids for model in ("job", "deadletter")]
    answers += [visitor.press("retry", ids[0]), visitor.press("purge", ids[1])]
    return "".join(answer.content.decode() + answer.headers.get("Location", "") for answer in answers)


def test_a_search_or_a_filter_cannot_ask_for_what_is_not_shown(queue, operator):
    put(queue, payload=json.dumps(payload("waits")))
    whole = operator.list().context["cl"].result_count
    assert whole == 1
    guesses = ["canary", "canary-hunter2", "%canary%", "can*", "error:canary", f"payload.url:{SECRETS['url']}"]
    guesses += ["payload.account.password:canary-hunter2", "payload.account.headers.0.value:canary-k-4711"]
    for guess in guesses:
        assert operator.list(q=guess).context["cl"].result_count == 0
    assert operator.list(q="payload.account.headers.0.name:X-Api-Key").context["cl"].result_count == 1
    for lookup in (
        "payload__icontains",
        "payload__account__password",
        "error__contains",
        "history__message",
        "payload",
    ):
        answer = operator.list(**{lookup: "canary-hunter2"})
        assert answer.status_code in (302, 400), lookup
        assert "canary" not in answer.headers.get("Location", ""), lookup


def test_a_traceback_in_the_log_is_cleared_of_the_row_that_a_database_quotes(queue, sql):
    job_id = put(queue, payload=json.dumps(payload("waits")))
    try:
        sql(f"UPDATE job_queue SET priority = 77, error = 'password=canary-hunter2' WHERE id = '{job_id}'")
    except DatabaseError as error:
        said = f"{error}"
        for formatter in (PlainFormatter("%(message)s"), JsonFormatter()):
            made = logging.makeLogRecord({"msg": "x", "name": "jobqueue", "exc_info": sys.exc_info()})
            text = formatter.format(made)
            assert "IntegrityError" in text
            assert canaries_in(text) == []
    assert queue.alias == "default" or canaries_in(said), "Postgres no longer quotes the row: the test is void"


@pytest.mark.postgres
@pytest.mark.parametrize("alias", ["postgres"], indirect=True)
def test_the_password_of_the_database_is_in_no_output_where_it_is_refused(start_worker, queue, alias, tmp_path):
    away = {"HOST": "127.0.0.1", "PORT": "1", "PASSWORD": "canary-hunter2"}
    worker = start_worker("--skip-checks", up=0, database=away)
    assert worker.wait() != 0
    assert "did not answer" in worker.output
    assert canaries_in(worker.output) == []


@ON_SQLITE
def test_the_file_of_the_database_holds_a_secret_in_its_payload_and_nowhere_else(start_worker, jobs, alias):
    """Payloads are plain text by promise; the check W009 says so. Nothing may copy them."""
    (dead,) = jobs.until("dead_letter", (start_worker(), log_in.enqueue(payload("fails")))[1])
    with sqlite3.connect(f"file:{connections[alias].settings_dict['NAME']}?mode=ro", uri=True) as raw:
        held = [
            (table, column)
            for (table,) in raw.execute(
                "SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE 'job_queue%'"
            )
            for (_, column, *_) in raw.execute(f"PRAGMA table_info({table})").fetchall()
            if raw.execute(f"SELECT count(*) FROM {table} WHERE {column} LIKE '%canary%'").fetchone()[0]
        ]
    raw.close()
    # Progress is the handler's own word, reported a moment later than it was given.
    assert set(held) - {("job_queue", "progress")} == {("job_queue", "payload")}
    assert "[redacted]" in dead.error
