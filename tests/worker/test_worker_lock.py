"""Tests of the lock of a worker: what proves a death, and what doesn't."""

from __future__ import annotations

import os
import shutil
import socket
from pathlib import Path

import pytest

from jobqueue import runtime
from jobqueue.models import Worker
from jobqueue.testing.contract.harness import draft, put_all, take
from jobqueue.testing.contract.ports.registering import worker as record_of
from jobqueue.worker import worker_lock
from jobqueue.worker.supervisor import deaths
from tests.conftest import ON_SQLITE

OWNER = "host:1:nonce"


@pytest.fixture
def place(settings, alias, tmp_path):
    """A runtime folder of this test's own."""
    (tmp_path / "run").mkdir()
    settings.JOBQUEUE = {"DATABASE": alias, "RUNTIME_DIR": str(tmp_path / "run")}
    return Path(runtime.path(worker_lock.FOLDER))


@pytest.fixture
def dead(queue, place):
    """A function that registers a worker with two claims; its lock is let go, as by its death, unless it lives."""
    locks = []

    def make(*, lives=False, **values):
        lock = worker_lock.locked()
        lock.sign(OWNER)
        queue.workers.enlist(record_of(OWNER, **{"lock": lock.identity, "pid": 1, **values}))
        put_all(queue, draft(), draft())
        assert len(take(queue, owner=OWNER)) == 2
        if lives:
            locks.append(lock)
        else:
            os.close(lock.descriptor)
        return lock

    yield make
    for lock in locks:
        lock.close()


@pytest.fixture
def is_ended(queue, look):
    """A function that looks for dead workers, and returns whether the claims of the worker were ended."""

    def look_and_see():
        look()
        return not queue.held_by(OWNER)

    return look_and_see


def test_a_free_lock_ends_the_claims_and_then_the_worker_is_forgotten(dead, is_ended, place, queue, look, caplog):
    dead()
    assert is_ended()
    assert "is dead" in caplog.text
    assert "Ended 2 jobs" in caplog.text
    look(seconds_later=1.5)
    assert (queue.workers.all(), list(place.iterdir())) == ([], [])


def test_what_the_last_statement_of_a_dead_worker_took_ends_too(dead, is_ended, queue, look):
    dead()
    assert is_ended()
    put_all(queue, draft())
    take(queue, 1, owner=OWNER)  # the server finished it after the worker's death
    look(seconds_later=0.5)
    assert queue.held_by(OWNER) == []


def test_a_held_lock_proves_nothing_even_if_the_process_id_is_gone(dead, is_ended):
    dead(lives=True, pid=4_000_000)
    assert not is_ended()


def test_a_free_lock_proves_a_death_even_if_the_process_id_is_taken(dead, is_ended):
    dead(pid=os.getpid())
    assert is_ended()


def test_a_worker_that_named_another_lock_is_not_judged(dead, is_ended, alias):
    dead()
    Worker.objects.using(alias).update(lock="7a3c:fe00:2a")
    assert not is_ended()


def test_a_worker_of_an_older_release_is_not_judged(dead, is_ended, alias):
    dead()
    Worker.objects.using(alias).update(lock=None)
    assert not is_ended()


def test_a_worker_that_is_not_registered_is_not_judged(dead, is_ended, queue):
    dead()
    queue.workers.dismiss(OWNER)
    assert not is_ended()


def test_a_folder_of_another_host_proves_nothing(dead, is_ended, settings, tmp_path, alias):
    dead(lives=True)
    (tmp_path / "other").mkdir()
    settings.JOBQUEUE = {"DATABASE": alias, "RUNTIME_DIR": str(tmp_path / "other")}
    assert not is_ended()


def test_a_copy_of_the_folder_proves_nothing(dead, is_ended, settings, tmp_path, alias):
    dead(lives=True)
    shutil.copytree(tmp_path / "run", tmp_path / "copy")
    settings.JOBQUEUE = {"DATABASE": alias, "RUNTIME_DIR": str(tmp_path / "copy")}
    assert not is_ended()


def test_another_boot_proves_nothing(dead, is_ended, monkeypatch, tmp_path):
    dead()
    (tmp_path / "boot").write_text("8b1c4c8e\n")
    monkeypatch.setattr(worker_lock, "_BOOT", tmp_path / "boot")
    assert not is_ended()


def test_a_folder_that_is_gone_proves_nothing(dead, is_ended, place, tmp_path):
    dead()
    shutil.rmtree(tmp_path / "run")
    assert not is_ended()


def test_a_removed_file_proves_nothing_nor_does_one_in_its_place(dead, is_ended, place):
    dead(lives=True)
    (file,) = place.iterdir()
    file.unlink()
    assert not is_ended()
    file.write_text(OWNER)
    assert not is_ended()


@pytest.mark.parametrize("other", ["its text", "its name"])
def test_only_a_file_with_the_workers_own_name_proves_a_death(dead, is_ended, place, other):
    dead()
    (file,) = place.iterdir()
    if other == "its text":
        file.write_text("host:2:nonce")
        assert not is_ended()
    else:
        file.rename(place / "renamed")
        assert is_ended()  # the file is the same one, and free


@ON_SQLITE
def test_file_systems_whose_locks_may_lie_are_not_used(dead, is_ended, monkeypatch, caplog):
    dead()
    caplog.set_level("INFO", "jobqueue")
    monkeypatch.setattr(worker_lock, "LOCAL", {0x6969: "nfs"})
    assert not is_ended()
    assert worker_lock.locked() is None
    assert "wait for the end of their leases" in caplog.text


@pytest.mark.parametrize(("path", "kind"), [("/proc", 0x9FA0), ("/sys", 0x62656572)])
def test_the_kind_of_a_file_system_is_the_kernels(path, kind):
    folder = os.open(path, os.O_RDONLY)
    assert worker_lock._kind(folder) == kind
    os.close(folder)


@ON_SQLITE
def test_other_things_in_the_folder_are_left_alone(dead, is_ended, place, tmp_path, monkeypatch):
    dead()
    victim = tmp_path / "victim"
    victim.write_text(OWNER)
    (place / "link").symlink_to(victim)
    (place / "folder").mkdir()
    os.mkfifo(place / "pipe")
    (place / "empty").touch()
    (place / "bytes").write_bytes(b"\xff\0" * 2_000)
    monkeypatch.chdir(place)  # the path of a socket must be short
    with socket.socket(socket.AF_UNIX) as one:
        one.bind("socket")
    before = {file.name for file in place.iterdir()}
    assert is_ended()
    assert {file.name for file in place.iterdir()} == before
    assert victim.read_text() == OWNER


@ON_SQLITE
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_a_file_of_another_user_proves_nothing(dead, is_ended, place):
    dead()
    (file,) = place.iterdir()
    os.chown(file, 65534, 65534)
    assert not is_ended()


@ON_SQLITE
def test_a_folder_that_others_can_enter_has_no_lock(place):
    place.mkdir(mode=0o755, parents=True)
    place.parent.chmod(0o755)
    assert worker_lock.locked() is None
    assert list(worker_lock.free_locks(())) == []


@ON_SQLITE
def test_files_that_nobody_will_judge_are_removed_after_some_time(queue, place, look):
    for name, age in ((".unready", 3), ("stranger", 3), ("recent", 1), (".starting", 1)):
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        place.parent.chmod(0o700)
        (place / name).write_text("host:9:nonce")
        then = (place / name).stat().st_mtime - age * 3600
        os.utime(place / name, (then, then))
    look()
    assert sorted(file.name for file in place.iterdir()) == [".starting", "recent"]


@ON_SQLITE
def test_a_look_at_living_workers_sends_no_statement(dead, look, queue, django_assert_num_queries, place):
    dead(lives=True)
    queue.workers.dismiss(OWNER)
    (place / "stranger").write_text("host:9:nonce")
    look()
    with django_assert_num_queries(0):
        look()


@ON_SQLITE
def test_a_program_does_not_inherit_the_lock(place):
    lock = worker_lock.locked()
    assert not os.get_inheritable(lock.descriptor)
    lock.sign(OWNER)
    assert [file.read_text() for file in place.iterdir()] == [OWNER]
    lock.close()
    assert list(place.iterdir()) == []


def test_thousands_of_files_are_judged_some_at_a_time(dead, is_ended, place, monkeypatch):
    """A process that had opened them all could open nothing else, not even the files of its database."""
    dead()
    for number in range(200):
        (place / f"{number:032x}").touch()
    held, most = set(), []

    class Counted(worker_lock.FreeLock):
        def __init__(self, descriptor, name):
            super().__init__(descriptor, name)
            held.add(name)
            most.append(len(held))

        def close(self):
            super().close()
            held.discard(self.name)

    monkeypatch.setattr(worker_lock, "FreeLock", Counted)
    assert [one for one in range(10) if is_ended()]
    assert max(most) <= deaths.MOST_HELD
