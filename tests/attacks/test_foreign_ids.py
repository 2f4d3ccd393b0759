"""Tests of ids and names of other programs in file names, headers and log lines."""

from __future__ import annotations

import json
import logging
import re

import pytest
from django.db import connections
from hypothesis import given
from hypothesis import strategies as st

from jobqueue import ids
from jobqueue.contrib.files.jobs import MARK, CreateFile, DeleteFile, create_file
from jobqueue.contrib.files.rooted import folder_of
from jobqueue.contrib.webhooks.jobs import WebhookDispatch, compare_delivered, webhook_dispatch
from jobqueue.contrib.webhooks.models import Delivery
from jobqueue.contrib.webhooks.signing import verify
from jobqueue.observe import logs
from jobqueue.testing.contract.harness import put
from tests.attacks.test_terminals import FORGED, HOSTILE, steering_in
from tests.contrib.conftest import attempt, configure
from tests.contrib.test_webhooks import endpoint, receiver

__all__ = ["configure", "endpoint", "receiver"]

IDS = [
    "/../../outside/sub/backup", "../x", "/etc/passwd", ".", "", "a\r\nX-Evil: 1", "a\nb", "ä€", "\udcff", "x" * 300,
    "a.123", "01j8zq4y3m6v7k2n5p8r1t4w6x", "8ZZZZZZZZZZZZZZZZZZZZZZZZZ", "01J8ZQ4Y3M6V7K2N5P8R1T4W6X\n",
    "0f3c1b9e-6f0e-4a52-9b62-0f3c1b9e6f0e", HOSTILE,
]  # fmt: skip


@given(st.text() | st.sampled_from(IDS))
def test_what_stands_for_an_id_is_a_plain_word_and_no_other_ids(job_id):
    word = ids.portable(job_id)
    assert re.fullmatch("[0-9A-Za-z]{26,64}", word)
    assert ids.portable(word) != word or word == job_id


def test_a_ulid_stands_for_itself():
    made = ids.new_id()
    assert ids.portable(made) == made


@pytest.fixture
def root(tmp_path):
    folder = tmp_path / "root"
    (folder / f"{MARK}").mkdir(parents=True)
    (tmp_path / "outside" / "sub").mkdir(parents=True)
    for fence in range(2_000, 2_030):
        (tmp_path / "outside" / "sub" / f"backup-{fence}").write_text("precious")
    return folder


def everything(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def test_a_worker_leaves_what_the_id_of_a_file_job_points_at(queue, alias, root, start_worker, jobs):
    outside = root.parent / "outside"
    before = everything(outside)
    several = [
        put(queue, "create_file", id=job_id, payload=json.dumps({"path": f"{number}/x", "content": "x"}))
        for number, job_id in enumerate(("/../../outside/sub/backup", "../../outside/sub/backup", "sub/x"))
    ]
    with connections[alias].cursor() as cursor:
        cursor.execute("UPDATE job_queue SET fence = 2025")
    start_worker("--concurrency", "1", apps=("jobqueue.contrib.files",), jobqueue={"FILES_ROOT": str(root)})
    jobs.until("completed", *several)
    assert everything(outside) == before
    assert everything(root) == sorted([MARK, *(f"{number}{end}" for number in range(3) for end in ("", "/x"))])


@pytest.mark.parametrize("job_id", IDS)
def test_whatever_its_id_a_file_job_leaves_nothing_but_its_file(root, settings, job_id):
    settings.JOBQUEUE = {"FILES_ROOT": str(root)}
    before = everything(root.parent / "outside")
    create_file(CreateFile(path="a/b", content="x"), attempt(job_id=job_id, number=2, fence=2_025))
    create_file(CreateFile(path="a/b", content="y", overwrite=True), attempt(job_id=job_id, number=2, fence=2_025))
    assert everything(root) == [MARK, "a", "a/b"]
    assert everything(root.parent / "outside") == before


@pytest.mark.parametrize("path", [f"{MARK}/x", f"a/{MARK}1/x", f"{MARK}1", ".JobQueue-1", "a/.JOBQUEUE-/b"])
def test_names_of_files_under_construction_are_no_part_of_a_path(path):
    for model in (lambda: CreateFile(path=path, content="x"), lambda: DeleteFile(path=path)):
        with pytest.raises(ValueError, match="the prefix of unfinished files"):
            model()


@pytest.mark.parametrize("name", ["../x", "a/b", "/etc/passwd", "..", ".", "", "a\0b"])
def test_an_open_folder_takes_single_names_alone(tmp_path, name):
    (tmp_path / "a").mkdir()
    works = [
        lambda folder: folder.read(name, 1),
        lambda folder: folder.mode(name),
        lambda folder: folder.write(name, b"", None),
        lambda folder: folder.replace(name, "x"),
        lambda folder: folder.replace("x", name),
        lambda folder: folder.place(name, "x"),
        lambda folder: folder.place("x", name),
        lambda folder: folder.drop(name),
        lambda folder: folder.remove(name),
    ]
    for work in works:
        with folder_of(tmp_path, "any") as (folder, _), pytest.raises(ValueError, match="is not the name"):
            work(folder)
    with pytest.raises(ValueError, match="is not the name"), folder_of(tmp_path, "../x", make=True):
        pass
    assert everything(tmp_path) == ["a"]


@pytest.mark.parametrize("job_id", IDS)
def test_whatever_its_id_a_webhook_is_delivered_and_logged(endpoint, receiver, job_id):
    payload = WebhookDispatch(endpoint_id=endpoint.pk, event="order.paid", data={})
    results = [webhook_dispatch(payload, attempt("webhook_dispatch", number, job_id)) for number in (1, 2)]
    first, second = receiver.requests
    assert first.headers["webhook-id"] == second.headers["webhook-id"] == ids.portable(job_id)
    assert verify(endpoint.secret, first.headers, first.body) == results[0]["delivery_id"]
    assert "X-Evil" not in first.headers
    assert [entry.delivery_id for entry in Delivery.objects.all()] == [ids.portable(job_id)] * 2
    assert compare_delivered(payload, results[0]) is None
    endpoint.refresh_from_db()
    assert (endpoint.failures, endpoint.enabled) == (0, True)


def test_no_name_in_a_line_of_the_log_begins_another(caplog):
    logger = logging.getLogger("jobqueue")
    with caplog.at_level("DEBUG", "jobqueue"):
        logger.warning("Job %s (%s) does not stop although %s", HOSTILE, 7, ValueError(HOSTILE))
        logger.warning("Job %(id)s", {"id": HOSTILE})
        logger.info("Relayed to %r, jobs: %d", HOSTILE, 3)
    for message in caplog.messages:
        assert steering_in(message) == []
        assert "\n" not in message
        assert "owned" in message
    assert caplog.records[0].args[1] == 7
    assert logs.one_line(HOSTILE).count(FORGED) == 1


def test_a_discrepancy_of_a_foreign_row_is_one_line_of_the_log(queue, configure, tmp_path, caplog):
    configure(FILES_ROOT=str(tmp_path))
    hostile = HOSTILE.replace("\0", "")
    put(queue, "create_file", id=hostile[:64], payload=json.dumps({"path": "gone", "content": "x"}))
    with connections[queue.alias].cursor() as cursor:
        cursor.execute("UPDATE job_queue SET status = 'completed', result = 'null', completed_at = updated_at")
    from jobqueue.contrib.reconcile.jobs import reconcile_jobs

    with caplog.at_level("WARNING", "jobqueue"):
        reconcile_jobs(attempt("reconcile_jobs"))
    (message,) = [one for one in caplog.messages if "Reconciliation" in one]
    assert "missing" in message
    assert steering_in(message) == []
    assert "\n" not in message
