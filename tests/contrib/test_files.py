"""Tests of file jobs on a real disk: complete files, idempotent, and never outside the root."""

from __future__ import annotations

import os
import threading
from itertools import count

import pytest
from pydantic import ValidationError

from jobqueue import Discard, JobStatus, PayloadInvalid
from jobqueue.contrib.files import jobs as file_jobs
from jobqueue.contrib.files.jobs import MARK, CreateFile, DeleteFile, create_file, delete_file
from jobqueue.contrib.files.rooted import NotAFile, folder_of
from jobqueue.handlers.registry import registry
from jobqueue.records import Assignment
from tests.contrib.conftest import attempt

OUTSIDE = (
    "../out", "a/../../out", "/etc/passwd", "a//b", "./a", "a/.", "", "a/", "..", "a\\..\\b", "a\nb", "a\x7f",
    "x" * 256, "/".join(["deep"] * 1_000), f"a/{MARK}1",
)  # fmt: skip


@pytest.fixture
def root(tmp_path, settings):
    folder = tmp_path / "root"
    folder.mkdir()
    settings.JOBQUEUE = {"FILES_ROOT": str(folder)}
    return folder


def create(path, content, **options):
    return create_file(CreateFile(path=path, content=content, **options), attempt())


def delete(path, number=1, **options):
    return delete_file(DeleteFile(path=path, **options), attempt(number=number))


def everything(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def test_a_file_is_written_whole_and_twice_is_as_once(root):
    first = create("notes/2026/a.txt", "Grüße")
    assert (root / "notes/2026/a.txt").read_text(encoding="utf-8") == "Grüße"
    assert first["changed"]
    before = (root / "notes/2026/a.txt").stat()
    second = create("notes/2026/a.txt", "Grüße")
    after = (root / "notes/2026/a.txt").stat()
    assert second == first | {"changed": False}
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert everything(root) == ["notes", "notes/2026", "notes/2026/a.txt"]


def test_other_content_is_an_error_without_overwrite(root):
    create("a.txt", "one")
    with pytest.raises(Discard, match="other content"):
        create("a.txt", "two")
    assert (root / "a.txt").read_text() == "one"
    (root / "a.txt").chmod(0o4700)
    assert create("a.txt", "two", overwrite=True)["changed"]
    assert (root / "a.txt").read_text() == "two"
    assert (root / "a.txt").stat().st_mode & 0o7777 == 0o700
    assert everything(root) == ["a.txt"]


def test_content_that_is_no_text(root):
    create("a.bin", "AAEC/w==", encoding="base64")
    assert (root / "a.bin").read_bytes() == b"\x00\x01\x02\xff"
    with pytest.raises(ValidationError):
        CreateFile(path="a.bin", content="no base64!", encoding="base64")


def test_of_two_jobs_for_one_file_one_is_refused_and_none_is_lost(root):
    for turn in range(30):
        meeting, outcomes = threading.Barrier(2), []

        def write(text, turn=turn, meeting=meeting, outcomes=outcomes):
            meeting.wait()
            try:
                outcomes.append(create_file(CreateFile(path=f"{turn}", content=text), attempt(job_id=f"job{text}")))
            except Discard as refusal:
                outcomes.append(refusal)

        threads = [threading.Thread(target=write, args=(text,)) for text in ("one", "two")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(isinstance(one, Discard) for one in outcomes) == [False, True]
        assert (root / str(turn)).read_text() in ("one", "two")
    assert len(everything(root)) == 30


def test_what_a_killed_attempt_left_is_tidied(root):
    job_id = attempt().job_id
    (root / f"{MARK}{job_id}-1").write_text("half of")
    create_file(CreateFile(path="a.txt", content="all of it"), attempt(number=2))
    assert everything(root) == ["a.txt"]


def test_a_file_is_removed_and_gone_is_a_success(root):
    create("a/b.txt", "x")
    assert delete("a/b.txt") == {"changed": True}
    assert delete("a/b.txt") == {"changed": False}
    assert delete("never/there.txt") == {"changed": False}
    with pytest.raises(Discard, match="no such file"):
        delete("a/b.txt", require_exists=True)
    # An earlier attempt may have removed it, and died before it could say so.
    assert delete("a/b.txt", number=2, require_exists=True) == {"changed": False}


@pytest.mark.parametrize("path", OUTSIDE)
def test_a_path_that_leads_out_is_no_payload(root, path):
    with pytest.raises(ValidationError):
        CreateFile(path=path, content="x")
    with pytest.raises(ValidationError):
        DeleteFile(path=path)


def test_a_forged_row_is_checked_when_it_runs(root):
    forged = Assignment(
        id="x", type="create_file", queue="default", payload='{"path": "../out", "content": "x"}', payload_version=1,
        attempt=1, max_retries=3, fence=1, owner="me", tenant=None, workspace=None, parent_id=None,
        context=None,
    )  # fmt: skip
    with pytest.raises(PayloadInvalid):
        registry.get("create_file").call(forged)
    assert not (root.parent / "out").exists()


def test_no_link_is_followed(root, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("secret")
    (root / "folder").symlink_to(outside)
    (root / "file").symlink_to(outside / "secret")
    for path in ("folder/secret", "folder/new", "file"):
        for attack in (lambda path=path: create(path, "x", overwrite=True), lambda path=path: delete(path)):
            with pytest.raises(Discard, match=r"link|regular"):
                attack()
    assert everything(outside) == ["secret"]
    assert (outside / "secret").read_text() == "secret"


def test_what_is_no_regular_file_is_left_alone(root):
    os.mkfifo(root / "pipe")
    (root / "folder").mkdir()
    for path in ("pipe", "folder"):
        with pytest.raises(Discard):
            create(path, "x", overwrite=True)
        with pytest.raises(Discard):
            delete(path)
    create("plain", "x")
    with pytest.raises(Discard):
        create("plain/below", "x")
    assert everything(root) == ["folder", "pipe", "plain"]


def test_a_folder_that_is_swapped_for_a_link_all_the_time_leads_nowhere(root, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "target").write_text("untouched")
    (root / "real").mkdir()
    (root / "link").symlink_to(outside)
    stop = threading.Event()

    def swap():
        while not stop.is_set():
            (root / "real").rename(root / "turn")
            (root / "link").rename(root / "real")
            (root / "real").rename(root / "link")
            (root / "turn").rename(root / "real")

    racer = threading.Thread(target=swap)
    racer.start()
    inside = refused = 0
    try:
        for number in count():
            if number >= 1_500 and inside and refused:
                break
            try:
                with folder_of(root, "real/target") as (folder, name):
                    folder.write(f"draft{number}", b"escaped", None)
                    folder.replace(f"draft{number}", name)
                    inside += 1
            except (NotAFile, FileNotFoundError):
                refused += 1
    finally:
        stop.set()
        racer.join()
    assert inside
    assert refused
    assert everything(outside) == ["target"]
    assert (outside / "target").read_text() == "untouched"


def test_without_a_root_nothing_is_done(settings, tmp_path):
    settings.JOBQUEUE = {}
    with pytest.raises(Discard, match="FILES_ROOT"):
        create("a", "x")
    # A volume that is not mounted is no reason to take every file for removed.
    settings.JOBQUEUE = {"FILES_ROOT": str(tmp_path / "unmounted")}
    for attack in (lambda: delete("a"), lambda: create("a", "x")):
        with pytest.raises(FileNotFoundError):
            attack()
    with pytest.raises(FileNotFoundError):
        file_jobs.compare_deleted(DeleteFile(path="a"), None)


def test_payloads_of_file_jobs_are_not_to_be_edited():
    assert not create_file.job_type.editable
    assert not delete_file.job_type.editable


def test_a_worker_runs_file_jobs(configure, start_worker, jobs, tmp_path):
    root = tmp_path / "root"
    root.mkdir()
    (root / "old.txt").write_text("old")
    kept = create_file.enqueue(path="a/b.txt", content="from a job")
    gone = delete_file.enqueue(path="old.txt")
    clash = create_file.using(idempotency_key="clash").enqueue(path="a/b.txt", content="another")
    start_worker("--concurrency", "1", apps=("jobqueue.contrib.files",), jobqueue={"FILES_ROOT": str(root)})
    jobs.until(JobStatus.COMPLETED, kept, gone)
    (dead,) = jobs.until(JobStatus.DEAD_LETTER, clash)
    assert dead.attempts == 1
    assert (root / "a/b.txt").read_text() == "from a job"
    assert everything(root) == ["a", "a/b.txt"]
