"""Tests of reconciliation: the last completed job of each subject is compared with the world."""

from __future__ import annotations

import json

import pytest

from jobqueue import backends, job
from jobqueue.handlers.registry import registry
from jobqueue.policy.settling import completed
from jobqueue.reconcile import comparison, reconcile
from jobqueue.testing.contract.harness import put, settle, take_one
from tests.cli.conftest import run

__all__ = ["run"]


@pytest.fixture
def root(tmp_path, configure):
    folder = tmp_path / "root"
    folder.mkdir()
    configure(FILES_ROOT=str(folder))
    return folder


@pytest.fixture
def begun(queue, root):
    """A function that has a worker take a job of a type."""

    def take(job_type, payload):
        backend = backends.current()
        put(backend, job_type, payload=json.dumps(payload))
        return backend, take_one(backend, types=frozenset({job_type}))

    return take


@pytest.fixture
def done(begun):
    """A function that makes a completed job, and nothing else of what it would have done."""

    def complete(job_type, result="null", **payload):
        backend, claim = begun(job_type, payload)
        assert settle(backend, completed(claim, result)) == ()
        return claim.id

    return complete


def test_what_is_as_it_was_left_is_no_discrepancy(done, root, run):
    (root / "a").write_text("x")
    done("create_file", path="a", content="x")
    done("delete_file", path="b")
    said = run("reconcile")
    assert (said.code, said.out) == (0, "")
    assert "2 jobs compared, 0 jobs with a discrepancy" in said.err


def test_each_discrepancy_is_told_and_nothing_is_mended(done, root, run):
    (root / "changed").write_text("another")
    (root / "back").write_text("again")
    (root / "link").symlink_to("changed")
    ids = [
        done("create_file", path="missing", content="x"),
        done("create_file", path="changed", content="x"),
        done("create_file", path="link", content="another"),
        done("delete_file", path="back"),
    ]
    said = run("reconcile")
    assert said.code == 1
    lines = said.out.splitlines()
    assert [line.split()[0] for line in lines] == ids
    for line, words in zip(lines, ("is missing", "has other content", "is not what was", "exists again"), strict=True):
        assert words in line
    assert sorted(path.name for path in root.iterdir()) == ["back", "changed", "link"]
    told = run("reconcile", "--type", "delete_file", "--json")
    assert told.code == 1
    assert (told.json["compared"], told.json["differing"], told.json["failed"]) == (1, 1, 0)
    assert told.json["discrepancies"][0]["job_id"] == ids[3]


def test_a_later_job_had_a_right_to_change_it(done, root, run):
    done("create_file", path="deleted later", content="x")
    done("delete_file", path="deleted later")
    done("create_file", path="overwritten", content="x")
    done("create_file", path="overwritten", content="y", overwrite=True)
    done("delete_file", path="made again")
    done("create_file", path="made again", content="z")
    (root / "overwritten").write_text("y")
    (root / "made again").write_text("z")
    assert run("reconcile").code == 0
    # Also where only the earlier job's type is asked for.
    assert run("reconcile", "--type", "create_file").code == 0


def test_what_is_in_motion_is_left_out(done, begun, run):
    done("create_file", path="a", content="x")
    backend, claim = begun("delete_file", {"path": "a"})
    said = run("reconcile")
    assert said.code == 0
    assert "0 jobs compared" in said.err
    assert settle(backend, completed(claim, "null")) == ()
    assert "1 job compared" in run("reconcile").err


def test_more_jobs_than_one_page(done, root, monkeypatch):
    monkeypatch.setattr(comparison, "PAGE", 10)
    for number in range(50):
        done("create_file", path=f"{number % 25}", content=f"{number}")
    for number in range(25):
        (root / f"{number}").write_text(f"{number + 25}")
    (root / "7").unlink()
    found, steps = [], []
    summary = reconcile(found.append, step=lambda seen, total: steps.append((seen, total)))
    assert (summary.compared, summary.differing) == (25, 1)
    assert found[0].text == "The file 7 is missing."
    assert steps == [(10, 25), (20, 25), (25, 25)]


def test_a_comparison_that_fails_hides_no_other(done, root, run, configure):
    done("create_file", path="../outside", content="x")  # a row that somebody forged
    done("create_file", path="a", content="x")
    done("webhook_dispatch", result='{"unknown": 1}', endpoint_id=7, event="a")
    said = run("reconcile")
    assert said.code == 1
    assert said.out.count("The comparison failed") == 2
    assert "is missing" in said.out
    assert "2 jobs could not be compared" in said.err


def test_a_type_that_offers_no_comparison_is_told(run, root):
    for name, words in (("send_welcome", "offers no comparison"), ("creat_file", "create_file")):
        said = run("reconcile", "--type", name)
        assert said.code == 3
        assert words in said.err


def test_a_handler_offers_its_comparison_and_secrets_stay_out(done, run):
    @job("tests.balance")
    def balance(account: int, api_token: str = "") -> None: ...

    @balance.reconciler()
    def compare(payload, result):
        return f"account {payload.account} was {result}, with {payload.api_token}"

    try:
        done("tests.balance", result="42", account=7, api_token="tok-123456")
        said = run("reconcile", "--type", "tests.balance")
        assert "account 7 was 42" in said.out
        assert "tok-123456" not in said.out
        assert compare(balance.job_type.payload.load('{"account": 1}', 1), 2) == "account 1 was 2, with "
    finally:
        registry._types.pop("tests.balance")
        registry._reconcilers.pop("tests.balance")


def test_a_worker_that_starts_reconciles(done, root, start_worker):
    done("create_file", path="missing", content="x")
    worker = start_worker(
        apps=("jobqueue.contrib.files", "jobqueue.contrib.reconcile"), jobqueue={"FILES_ROOT": str(root)}
    )
    worker.until_said("The file missing is missing.")
    worker.until_said("reconcile_jobs")
