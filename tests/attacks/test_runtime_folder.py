"""Tests of traps of other users in the runtime folder: no file is touched, and each job is enqueued."""

from __future__ import annotations

import itertools
import os
import pwd
import shutil
import signal
import socket
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest
from django.db import connections

from jobqueue.backends.sqlite.wake import SqliteListener, folder, send_wake_up
from jobqueue.worker import embedded
from tests.app.jobs import send_welcome
from tests.conftest import ON_SQLITE
from tests.worker.harness import until

pytestmark = [
    ON_SQLITE,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as another user"),
]

PROTECTED_LINKS = Path("/proc/sys/fs/protected_symlinks")
BASES = {
    "sticky": (0, 0o1777), "sticky, the other's": (65534, 0o1777), "for all to write": (0, 0o777),
    "for a group to write": (0, 0o770), "the other's": (65534, 0o755),
}  # fmt: skip


def fork_as_nobody(work):
    """Run a function as the user nobody, in a process of its own."""
    nobody = pwd.getpwnam("nobody")
    pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        os.setgroups([])
        os.setgid(nobody.pw_gid)
        os.setuid(nobody.pw_uid)
        work()
        status = 0
    finally:
        os._exit(status)


def as_nobody(work):
    assert os.waitpid(fork_as_nobody(work), 0)[1] == 0


@pytest.fixture(params=["0", "1"], ids=["links unprotected", "links protected"])
def links(request):
    """The kernel's protection of links in sticky folders, off and on; set back afterwards."""
    before = PROTECTED_LINKS.read_text().strip() if PROTECTED_LINKS.exists() else "0"
    if before == request.param:
        yield
        return
    try:
        PROTECTED_LINKS.write_text(request.param)
    except OSError as error:
        pytest.skip(f"fs.protected_symlinks is {before} and cannot be set here: {error.strerror}")
    try:
        yield
    finally:
        PROTECTED_LINKS.write_text(before)


@pytest.fixture(params=BASES)
def base(request, links, alias, settings):
    """A folder where temporary files go, of several kinds, in which the user nobody can write."""
    owner, mode = BASES[request.param]
    place = Path(tempfile.mkdtemp())
    os.chown(place, owner, pwd.getpwnam("nobody").pw_gid)
    place.chmod(mode)
    settings.JOBQUEUE = {"RUNTIME_DIR": str(place)}
    yield place
    shutil.rmtree(place)


@pytest.fixture
def victim(tmp_path):
    """A private folder of root's, with a file, a folder and the socket of something that does not run just now."""
    place = tmp_path / "victim"
    (place / "folder").mkdir(mode=0o700, parents=True)
    place.chmod(0o700)
    (place / "file").write_text("precious")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as one:
        one.bind(str(place / "socket"))
    return place


def is_untouched(victim):
    return sorted(one.name for one in victim.iterdir()) == ["file", "folder", "socket"]


def link_the_inner_folder(place, victim):
    place.parent.mkdir(mode=0o700)
    place.symlink_to(victim)


def link_the_outer_folder(place, victim):
    place.parent.symlink_to(victim.parent)


def link_each_file(place, victim):
    place.mkdir(mode=0o700, parents=True)
    for name in ("file", "folder", "socket"):
        (place / name).symlink_to(victim / name)


def open_it_to_all(place, victim):
    place.parent.mkdir()
    place.parent.chmod(0o777)
    place.symlink_to(victim)


TRAPS = [link_the_inner_folder, link_the_outer_folder, link_each_file, open_it_to_all]


@pytest.mark.parametrize("trap", TRAPS, ids=lambda one: one.__name__)
def test_a_trap_set_beforehand_harms_nobody(queue, base, settings, victim, trap, caplog):
    settings.JOBQUEUE = {"RUNTIME_DIR": str(base)}
    place = folder(connections["default"])
    if trap is link_the_outer_folder:
        victim = victim.rename(victim.parent / place.name)
    as_nobody(lambda: trap(place, victim))
    assert send_welcome.enqueue(7).created
    send_wake_up(connections["default"])
    assert is_untouched(victim)
    listener = SqliteListener("default")
    try:
        assert "not private" in caplog.text or "Not a directory" in caplog.text or "symbolic" in caplog.text
        assert not listener.self_test(0.01)
    finally:
        listener.close()
    assert is_untouched(victim)
    if (lock := embedded._lock_opened()) is not None:
        os.close(lock)
    assert is_untouched(victim)
    assert sorted(victim.parent.iterdir()) == [victim]


@contextmanager
def swapping(place, target):
    """Have nobody put a link in the folder's place and take it away again, all the time."""
    kept, link = place.with_name("kept"), place.with_name("link")

    def swap():
        link.symlink_to(target)
        for number in itertools.count():
            try:
                place.rename(kept)
                link.rename(place)
                place.rename(link)
                kept.rename(place)
            except OSError:  # root made a new folder in the gap
                place.rename(place.with_name(f"new{number}"))
                kept.rename(place)

    pid = fork_as_nobody(swap)
    try:
        until(lambda: place.is_symlink(), what="a swap")
        yield
    finally:
        os.kill(pid, signal.SIGTERM)
        os.waitpid(pid, 0)


@pytest.mark.parametrize("base", ["for all to write"], indirect=True)
def test_a_link_swapped_in_all_the_time_leads_nowhere(queue, base, settings, victim, tmp_path):
    settings.JOBQUEUE = {"RUNTIME_DIR": str(base)}
    place = folder(connections["default"])
    target = tmp_path / "target"
    target.mkdir(mode=0o700)
    victim = victim.rename(target / place.name)
    listener = SqliteListener("default")
    try:
        with swapping(place.parent, target):
            for _ in range(3_000):
                send_wake_up(connections["default"])
            until(lambda: listener.self_test(0), what="a wake-up between two swaps")
            for _ in range(500):
                SqliteListener("default").close()
    finally:
        listener.close()
    assert is_untouched(victim)
    assert sorted(target.iterdir()) == [victim]
