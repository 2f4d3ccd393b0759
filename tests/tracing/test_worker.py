"""Tests of traces from a caller through a real worker, whose executors are forked."""

from __future__ import annotations

import gzip
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from opentelemetry import trace

from jobqueue.models import Job
from tests.app.worker_jobs_traced import traced_end_to_end
from tests.conftest import ON_BOTH
from tests.tracing.observed.apps import AFTER, BEFORE, DSN, LIFECYCLE, OPENTELEMETRY

SQLITE_ALONE = True
APPS = ("tests.tracing.observed",)


def run_all(jobs, worker, receipt):
    """Wait until a job and its follow-up have completed, and stop the worker."""
    jobs.until("completed", receipt)
    children = Job.objects.using(jobs.alias).filter(parent_id=receipt.id)
    jobs.until("completed", *children.values_list("id", flat=True))
    assert children.count() == 1
    assert worker.stop() == 0  # executors send what waits before they end


@ON_BOTH
@pytest.mark.parametrize(("when", "processes"), [(BEFORE, "1"), (AFTER, "2"), (AFTER, "0")])
def test_the_spans_of_a_worker_are_in_the_trace_of_the_caller(start_worker, jobs, ledger, spans, when, processes):
    with trace.get_tracer("a view").start_as_current_span("request") as request:
        receipt = traced_end_to_end.enqueue()
    given = {"apps": APPS, "environment": {OPENTELEMETRY: when}}
    worker = start_worker("--processes", processes, up=int(processes), **given)
    run_all(jobs, worker, receipt)

    found = [json.loads(line) for line in (ledger.folder / "spans").read_text().splitlines()]
    named = {name: [one for one in found if one["name"] == name] for name in {one["name"] for one in found}}
    assert {one["context"]["trace_id"] for one in found} == {f"0x{request.get_span_context().trace_id:032x}"}
    attempts = named["process default"]
    assert sorted(one["attributes"]["jobqueue.outcome"] for one in attempts) == ["completed", "completed", "retried"]
    ids = {one["context"]["span_id"] for one in attempts}
    create, [follow_up] = f"0x{spans.one('create default').context.span_id:016x}", named["create default"]
    assert {one["parent_id"] for one in attempts} == {create, follow_up["context"]["span_id"]}
    assert follow_up["parent_id"] in ids
    assert {one["parent_id"] for one in named["inside"]} == ids
    assert {one["parent_id"] for one in named["settle default"]} <= ids
    assert len(named["settle default"]) >= 2  # that of the last job may come after its executor was dismissed


@pytest.fixture
def sentry_server():
    """A server that takes envelopes as Sentry does. It has the items that came, each with its kind."""
    items = []

    class Relay(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            lines = [json.loads(line) for line in body.splitlines() if line][1:]
            items.extend((head["type"], item) for head, item in zip(lines[::2], lines[1::2], strict=True))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_args):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Relay) as server:
        server.items = items
        server.dsn = f"http://key@127.0.0.1:{server.server_port}/1"
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_sentry_gets_the_trace_of_a_worker_without_configuration(start_worker, jobs, sentry, sentry_server, lifecycle):
    with sentry.start("a view"):
        receipt = traced_end_to_end.enqueue()
    hopeless = traced_end_to_end.using(max_retries=1).enqueue()
    environment = {DSN: sentry_server.dsn, LIFECYCLE: lifecycle}
    worker = start_worker("--processes", "1", apps=APPS, environment=environment)
    jobs.until("dead_letter", hopeless)
    run_all(jobs, worker, receipt)

    [(publish, _)] = sentry.spans("queue.publish")
    processed = [one for one, data in found_spans(sentry_server.items, "queue.process", receipt.id)]
    assert len(processed) == 2
    assert {one["trace_id"] for one in processed} == {publish["trace_id"]}
    [issue] = [one for kind, one in sentry_server.items if kind == "event"]
    assert issue["tags"]["job.id"] == hopeless.id
    assert issue["exception"]["values"][-1]["type"] == "RuntimeError"


def found_spans(items, op, job_id):
    """The spans of one kind and job, each with its data."""
    every = []
    for kind, one in items:
        if kind == "transaction":
            every += [(span, span.get("data", {}), span["op"]) for span in one["spans"]]
        elif kind == "span":
            for span in one["items"]:
                data = {key: value["value"] for key, value in span["attributes"].items()}
                every.append((span, data, data.get("sentry.op")))
    return [(span, data) for span, data, its in every if its == op and data.get("messaging.message.id") == job_id]
