"""Tests of `archive`: pruned jobs are there, each once, whatever died while they were written, packed or deleted."""

from __future__ import annotations

import fcntl
import json
import random
import subprocess
from collections import Counter
from datetime import timedelta
from pathlib import Path

import pytest

from jobqueue.archive.pack import lines, pack, store
from jobqueue.archive.place import FolderPlace, place_of
from jobqueue.checks.retention import check_retention
from jobqueue.models import Job
from jobqueue.testing.contract.harness import finish, put, take
from tests.cli.conftest import arguments
from tests.conftest import ON_SQLITE

ROW = {"id": "7", "type": "greet", "status": "completed", "completed_at": "2026-01-16T12:00:00Z"}
NAME = "completed-2026-01-16"
STORAGE = "django.core.files.storage.FileSystemStorage"


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "archive"


@pytest.fixture
def place(folder):
    return FolderPlace(folder)


@pytest.fixture
def archives(settings, folder):
    """A rule that archives all completed jobs."""
    rule = {"status": "completed", "keep": 0, "keep_last": 1_000_000, "archive": str(folder)}
    settings.JOBQUEUE = {**settings.JOBQUEUE, "RETENTION": [rule]}
    return rule


def completed(queue, count):
    """Make jobs that ended some days ago, and return their ids."""
    for _ in range(count):
        put(queue, "send_welcome")
    ids = [claim.id for claim in take(queue, count, types=frozenset({"send_welcome"})) if finish(queue, claim)]
    for place, job_id in enumerate(ids):
        days = timedelta(days=1 + place % 2)
        Job.objects.using(queue.alias).filter(pk=job_id).update(completed_at=queue.now() - days)
    return ids


def archived(place):
    """Count in how many lines of the archive each job is."""
    return Counter(json.loads(line)["id"] for day in place.days() for line in lines(place, day))


def test_jobs_are_archived_before_they_are_deleted_and_can_be_found(run, queue, archives, place):
    ids = completed(queue, 4)
    assert run("prune").err == "4 jobs were deleted.\n"
    assert archived(place) == dict.fromkeys(ids, 1)
    said = run("archive", "search", ids[2], "--json")
    (row,) = said.json["jobs"]
    assert (said.code, row["id"], row["type"], row["status"], row["history"]) == (
        *(0, ids[2], "send_welcome"),
        *("completed", []),
    )
    assert run("archive", "search", "nowhere").code == 1
    assert run("archive", "search", "--type", "resize_image").code == 1
    assert len(run("archive", "search", "--limit", "3", "--json").json["jobs"]) == 3


def test_packing_leaves_one_file_for_each_day_and_status(run, queue, archives, folder, place):
    ids = completed(queue, 4)
    run("prune")
    assert sorted(run("archive", "pack", "--json").json["packed"].values()) == [2, 2]
    assert sorted(path.suffix for path in folder.iterdir() if path.name != ".lock") == [".gz", ".gz"]
    assert archived(place) == dict.fromkeys(ids, 1)
    more = completed(queue, 2)
    run("prune")
    run("archive", "pack")
    assert archived(place) == dict.fromkeys([*ids, *more], 1)
    assert run("archive", "pack").err == "0 files packed.\n"


def test_a_job_that_is_retried_before_it_is_archived_stays_in_the_table_alone(
    run, queue, settings, archives, folder, place, monkeypatch
):
    settings.JOBQUEUE = {**settings.JOBQUEUE, "RETENTION": [archives | {"status": "dead_letter"}]}
    retried, gone = completed(queue, 2)
    Job.objects.using(queue.alias).update(status="dead_letter")
    kind = type(queue.retention)
    rows = kind.rows

    def rows_after_a_retry(self, ids):
        queue.operator.retry([retried])
        return rows(self, ids)

    monkeypatch.setattr(kind, "rows", rows_after_a_retry)
    run("prune")
    assert {path.name.partition("-")[0] for path in folder.iterdir()} == {"dead_letter"}
    assert archived(place) == {gone: 1}
    assert queue.jobs.get(retried).status == "queued"


def test_a_dry_run_archives_nothing(run, queue, archives, folder):
    completed(queue, 1)
    run("prune", "--dry-run")
    assert not folder.exists()


def test_a_folder_that_cannot_be_written_keeps_the_jobs(run, queue, archives, folder):
    ids = completed(queue, 2)
    folder.write_text("not a folder")
    said = run("prune")
    assert (said.code, "Jobs can't be archived, so they stay: " in said.err) == (3, True)
    assert all(queue.jobs.get(job_id) for job_id in ids)


def test_a_job_that_was_archived_twice_is_found_once_as_it_was_last(place):
    store(place, [ROW | {"error": "first"}])
    store(place, [ROW | {"error": "second"}])
    assert [json.loads(line)["error"] for line in lines(place, NAME)] == ["second"]
    assert pack(place, NAME) == 1
    store(place, [ROW | {"error": "third"}])
    assert [json.loads(line)["error"] for line in lines(place, NAME)] == ["third"]


@pytest.mark.parametrize("point", ["os.fsync", "pathlib.Path.replace", "pathlib.Path.unlink"])
def test_packing_that_dies_anywhere_loses_nothing(place, monkeypatch, point):
    for number in range(3):
        store(place, [ROW | {"id": str(number)}])

    def die(*_args, **_options):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(point, die)
        with pytest.raises(KeyboardInterrupt):
            pack(place, NAME)
    assert archived(place) == {"0": 1, "1": 1, "2": 1}
    assert pack(place, NAME) == 3
    assert archived(place) == {"0": 1, "1": 1, "2": 1}
    assert place.parts(NAME) == []


def test_two_processes_do_not_pack_at_once(folder, place):
    store(place, [ROW])
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(OSError, match="another process packs"):
            pack(place, NAME)
    assert pack(place, NAME) == 1


def test_a_damaged_file_is_named_and_kept(run, archives, folder, place):
    store(place, [ROW])
    part = folder / place.parts(NAME)[0]
    part.write_bytes(part.read_bytes()[:-9])
    for action in ("search", "pack"):
        said = run("archive", action)
        assert (said.code, part.name in said.err, "is damaged" in said.err) == (3, True, True)
    assert part.exists()


def test_an_archive_can_be_in_a_storage(run, queue, settings, tmp_path):
    settings.STORAGES = {"cold": {"BACKEND": STORAGE, "OPTIONS": {"location": str(tmp_path)}}}
    rule = {"status": "completed", "keep": 0, "archive": "storage:cold/shop/jobs"}
    settings.JOBQUEUE = {**settings.JOBQUEUE, "RETENTION": [rule]}
    place, ids = place_of("storage:cold/shop/jobs"), completed(queue, 4)
    assert place.days() == []
    run("prune")
    assert archived(place) == dict.fromkeys(ids, 1)
    assert sorted(run("archive", "pack", "--json").json["packed"].values()) == [2, 2]
    assert run("archive", "search", ids[3], "--json").json["jobs"][0]["id"] == ids[3]
    ids += completed(queue, 2)
    run("prune")
    run("archive", "pack")
    assert archived(place) == dict.fromkeys(ids, 1)
    assert len([path for path in (tmp_path / "shop/jobs").iterdir() if path.is_file()]) == 2
    assert run("archive", "pack").err == "0 files packed.\n"


def test_packing_into_a_storage_that_dies_loses_nothing(settings, tmp_path, monkeypatch):
    settings.STORAGES = {"cold": {"BACKEND": STORAGE, "OPTIONS": {"location": str(tmp_path)}}}
    place = place_of("storage:cold")
    for number in range(3):
        store(place, [ROW | {"id": str(number)}])
    with monkeypatch.context() as patch:
        patch.setattr(f"{STORAGE}.delete", lambda *_: (_ for _ in ()).throw(KeyError("the network is gone")))
        with pytest.raises(OSError, match="'cold' failed: KeyError"):
            pack(place, NAME)
    assert len(place.parts(NAME)) == 3
    assert archived(place) == {"0": 1, "1": 1, "2": 1}
    assert pack(place, NAME) == 3
    assert (place.parts(NAME), len(place.packed(NAME)), archived(place)) == ([], 1, {"0": 1, "1": 1, "2": 1})


def test_a_storage_that_does_not_exist_keeps_the_jobs_and_is_an_error_of_the_settings(run, queue, settings):
    rule = {"status": "completed", "keep": 0, "archive": "storage:colt"}
    settings.STORAGES = {"cold": {"BACKEND": STORAGE}}
    settings.JOBQUEUE = {**settings.JOBQUEUE, "RETENTION": [rule]}
    (error,) = [one for one in check_retention() if one.id == "jobqueue.E015"]
    assert ("'colt'" in error.msg, "'cold'" in error.hint) == (True, True)
    (job_id,) = completed(queue, 1)
    said = run("prune")
    assert (said.code, "the storage 'colt' failed" in said.err) == (3, True)
    assert queue.jobs.get(job_id)


def test_without_a_rule_that_archives_there_is_no_archive(run, settings):
    settings.JOBQUEUE = {**settings.JOBQUEUE, "RETENTION": []}
    said = run("archive", "search")
    assert said.code == 3
    assert "No rule in JOBQUEUE['RETENTION'] has an 'archive'." in said.err


@ON_SQLITE
def test_after_kills_each_job_is_in_the_table_or_once_in_the_archive(run, queue, alias, archives, folder, place):
    ids, dice = completed(queue, 300), random.Random(7)
    for turn in range(6):
        given = arguments(alias, "prune" if turn % 3 else "archive", *(() if turn % 3 else ("pack",)))
        told = json.loads(given["env"]["COMMAND_SETTINGS"]) | {"JOBQUEUE": {"RETENTION": [archives]}}
        given["env"] = given["env"] | {"COMMAND_SETTINGS": json.dumps(told)}
        with subprocess.Popen(**given, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            try:
                process.wait(dice.uniform(0.3, 0.9))
            except subprocess.TimeoutExpired:
                process.kill()
        found = archived(place) if folder.exists() else {}
        assert all(count == 1 for count in found.values())
        left = {job_id for job_id in ids if queue.jobs.get(job_id)}
        assert left | found.keys() == {*ids}
    run("prune")
    run("archive", "pack")
    assert archived(place) == dict.fromkeys(ids, 1)
    assert not any(queue.jobs.get(job_id) for job_id in ids)
    assert all(path.suffix == ".gz" or path.name.startswith(".") for path in Path(folder).iterdir())
