"""Tests of the demo's failures: wrong totals, Ctrl-C, an unusable database."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
from contextlib import closing
from threading import Thread

import pytest

from tests.demo.conftest import MANAGE, ROOT, Site

pytestmark = [pytest.mark.sqlite, pytest.mark.timeout(120)]

#: A thief who takes a job from the table as soon as it is done.
THIEF = """
CREATE TRIGGER thief AFTER UPDATE ON job_queue WHEN NEW.type = 'ask_supplier' AND NEW.status = 'completed'
BEGIN DELETE FROM job_queue WHERE id = NEW.id; END
"""


def is_alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_sums_that_do_not_add_up_are_an_error(file):
    assert file.run([*MANAGE, "migrate", "-v", "0", "--skip-checks"])[0] == 0
    assert file.run([*MANAGE, "jobqueue", "pause", "--type", "resize_image"])[0] == 0
    file.write(THIEF)
    code, out, err = file.demo()
    assert code == 1
    assert "The sums do not add up." in err
    assert "1 accepted jobs are no longer in the table." in err
    assert "20 jobs are queued: neither completed nor dead letters." in err
    assert "   21  lost" in out
    assert "The sums add up." not in out


def test_another_worker_on_the_same_database_takes_its_share(tmp_path):
    path = tmp_path / "demo.sqlite3"
    site = Site({"EXAMPLE_SQLITE": str(path)}, ["--database", str(path)], lambda: sqlite3.connect(path, timeout=10))
    assert site.run([*MANAGE, "migrate", "-v", "0", "--skip-checks"])[0] == 0
    line = [*MANAGE, "runworker", "--skip-checks"]
    with subprocess.Popen(line, cwd=ROOT, env=site.env, stdout=subprocess.PIPE, text=True) as other:
        try:
            assert any("limits" in line for line in other.stdout)
            said = []
            reader = Thread(target=said.extend, args=(other.stdout,))
            reader.start()
            code, out, err = site.demo()
            other.terminate()
            reader.join(60)
        finally:
            other.kill()
    assert (code, err) == (0, "")
    assert "The sums add up." in out
    assert any("Job completed" in line for line in said)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["ctrl-c", "sigterm"])
def test_an_interruption_ends_the_worker_too_and_loses_nothing(tmp_path, number):
    path = tmp_path / "demo.sqlite3"
    demo = subprocess.Popen(
        [*MANAGE, "demo", "--database", str(path)],
        cwd=ROOT,
        env=os.environ | {"DJANGO_SETTINGS_MODULE": "example_project.settings"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # As on a terminal; what a shell runs in the background begins with Ctrl-C switched off.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    try:
        # The first dead letter: the worker is at work.
        assert any("Job dead-lettered" in line for line in demo.stdout)
        with closing(sqlite3.connect(path, timeout=10)) as connection:
            [(worker,)] = connection.execute("SELECT pid FROM job_queue_worker").fetchall()
            assert is_alive(worker)
            demo.send_signal(number)
            _, err = demo.communicate(timeout=60)
            assert demo.returncode == 130
            assert err.strip() == "Interrupted. The worker has ended too; unfinished jobs wait in the database."
            assert not is_alive(worker)
            statuses = dict(connection.execute("SELECT status, count(*) FROM job_queue GROUP BY status").fetchall())
            [(parents,)] = connection.execute(
                "SELECT count(*) FROM job_queue WHERE type IN ('charge_card', 'sanitize_ai_validation') "
                "AND status = 'completed'"
            ).fetchall()
            [(learnings,)] = connection.execute(
                "SELECT count(DISTINCT idempotency_key) FROM job_queue WHERE type = 'mine_upload'"
            ).fetchall()
    finally:
        demo.kill()
        demo.wait()
    assert set(statuses) <= {"queued", "completed", "dead_letter"}
    assert statuses["queued"] > 0
    assert sum(statuses.values()) - learnings in (333 + parents, 333 + parents + 20)


def test_a_folder_that_is_not_there_is_one_sentence(file, tmp_path):
    code, _, err = file.run([*MANAGE, "demo", "--database", str(tmp_path / "nowhere" / "demo.sqlite3")])
    assert code == 1
    assert err == f"CommandError: There is no folder {tmp_path / 'nowhere'} for the database.\n"


def test_a_file_that_is_no_database_is_one_sentence(file, tmp_path):
    letter = tmp_path / "letter.txt"
    letter.write_text("Dear all, " * 100)
    code, _, err = file.run([*MANAGE, "demo", "--database", str(letter)])
    assert code == 1
    assert err == "CommandError: The database failed: file is not a database\n"
    assert letter.read_text() == "Dear all, " * 100


def test_two_databases_are_one_too_many(file):
    with_both = os.environ | {"DJANGO_SETTINGS_MODULE": "example_project.settings", "EXAMPLE_POSTGRES": "shop"}
    done = subprocess.run(
        [*MANAGE, "demo", "--database", "x.sqlite3"], cwd=ROOT, env=with_both, capture_output=True, text=True
    )
    assert done.returncode == 1
    assert done.stderr.startswith("CommandError: EXAMPLE_POSTGRES names the database already;")
