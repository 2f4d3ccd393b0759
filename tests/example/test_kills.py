"""Tests of ``mine_upload`` killed after each step: one upload and one transaction for each learning."""

from __future__ import annotations

import json
import os
import signal
from collections import Counter
from dataclasses import replace

import pytest

from example_project.capture.models import new_id
from jobqueue.clock import SYSTEM, from_text
from tests.worker.harness import until

#: In the order of an upload's life; see ``killing.py``.
STEPS = ("look", "put", "stored", "numbered", "sign", "signed", "send", "submitted", "inclusion", "confirmed")
LEASE = "SELECT lease_until FROM job_queue WHERE status = 'in_progress'"
pytestmark = pytest.mark.timeout(180)


@pytest.fixture
def killed(site):
    """The example project with ports that kill."""
    journal = site.folder / "journal"
    journal.touch()
    environment = site.environment | {"EXAMPLE_JOURNAL": str(journal)}
    return replace(site, environment=environment, settings="tests.example.killing_settings")


def test_each_learning_is_uploaded_and_sent_once_though_every_step_ends_in_a_kill(killed, client):
    lessons = [f"We decided to go on after-{step} because a kill is no excuse." for step in STEPS]
    _capture(client, " ".join(lessons))
    with killed.working("--concurrency", "1"):
        killed.until("SELECT count(*) FROM uploads WHERE status = 'confirmed'", len(STEPS))
        killed.until("SELECT count(*) FROM job_queue WHERE status = 'completed'", 2 + len(STEPS))
    deaths = "SELECT type, ending, count(*) FROM job_queue_attempt a JOIN job_queue j ON a.job_id = j.id GROUP BY 1, 2"
    assert killed.rows(deaths) == [("mine_upload", "crashed", len(STEPS))]
    _check_once_each(killed, len(STEPS))


@pytest.mark.parametrize("site", [pytest.param("_file", marks=pytest.mark.sqlite)], indirect=True, ids=["sqlite"])
def test_a_worker_that_is_killed_whole_leaves_an_upload_that_the_next_worker_ends(killed, client):
    before = killed.value("SELECT count(*) FROM uploads")
    mark = killed.folder / "journal.hang-after-send"
    with killed.working("--lease", "2") as worker:
        _capture(client, "We decided to hang-after-send because the next worker comes anyway.")
        until(mark.exists, what="a transaction that is sent")
        os.killpg(worker.pid, signal.SIGKILL)
        worker.wait()
    assert killed.value("SELECT count(*) FROM uploads WHERE status = 'ipfs_uploaded'") == 1
    until(lambda: _moment(killed.value(LEASE)) < SYSTEM.now(), what="the end of the lease")
    with killed.working():
        killed.until("SELECT count(*) FROM uploads WHERE status = 'confirmed'", before + 1)
    _check_once_each(killed, before + 1)


def _moment(value):
    return from_text(value) if isinstance(value, str) else value


def _capture(client, said):
    sent = {"conversation_id": new_id(), "messages": [{"role": "assistant", "content": said}]}
    assert client.post("/capture/", json=sent).status_code == 202


def _journal(site):
    return (site.folder / "journal").read_text().splitlines()


def _check_once_each(site, count):
    noted = Counter(_journal(site))
    puts = {line: times for line, times in noted.items() if line.startswith("put ")}
    assert len(puts) == count
    assert set(puts.values()) == {1}
    sent = {line.split()[1] for line in noted if line.startswith("send ")}
    lines = [json.loads(line)["hash"] for line in (site.network / "ledger.jsonl").read_text().splitlines()]
    assert len(lines) == len(sent) == count
    assert set(lines) == sent == {row[0] for row in site.rows("SELECT chain_tx_hash FROM uploads")}
