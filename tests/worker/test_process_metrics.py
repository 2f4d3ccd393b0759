"""Tests of the metrics that a worker serves about its own process."""

from __future__ import annotations

import os
import signal
import socket
from urllib.request import urlopen

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.app.worker_jobs_b import nap
from tests.worker.harness import until

SQLITE_ALONE = True


@pytest.fixture
def port():
    with socket.create_server(("127.0.0.1", 0)) as free:
        return free.getsockname()[1]


def scraped(port):
    with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
        text = answer.read().decode()
    found = [one for family in text_string_to_metric_families(text) for one in family.samples]
    assert all(one.labels == {} for one in found)
    return {one.name.removeprefix("jobqueue_process_"): one.value for one in found}


def test_a_worker_serves_what_its_process_does(start_worker, jobs, port):
    worker = start_worker("--metrics-port", str(port), "--concurrency", "3")
    jobs.until("completed", nap.enqueue(seconds=0.01))
    found = scraped(port)
    assert (found["slots"], found["executors"], found["jobs_taken_total"]) == (3, 1, 1)
    assert found["database_calls_total"] > 3
    assert 0 < found["database_wait_seconds_total"] < found["turn_seconds_total"] + 5
    assert found["turns_total"] > 1
    assert found["database_lost"] == 0
    os.kill(worker.executors[0], signal.SIGKILL)
    until(lambda: scraped(port)["executors_started_total"] == 2, what="a second executor")
    assert worker.stop() == 0


def test_a_port_in_use_is_one_sentence(start_worker):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        worker = start_worker("--metrics-port", str(port), up=0)
        assert worker.wait() != 0
    assert "Traceback" not in worker.output
    assert f"--metrics-port cannot be used, because 127.0.0.1:{port} cannot be opened" in worker.output
    until(lambda: not list(worker.relatives()), what="the end of its processes")
