"""Tests of limits across processes that are killed, judged by a ledger outside the database."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import defaultdict
from dataclasses import asdict
from pathlib import Path

import pytest

from jobqueue.backends.postgresql.claims import limit_statements
from jobqueue.models import Job, Start
from jobqueue.records import Filter
from jobqueue.states import JobStatus
from jobqueue.testing import VirtualClock
from jobqueue.testing.contract import BackendContract
from jobqueue.testing.contract.harness import draft
from jobqueue.testing.contract.limiting import at_once, rate
from tests.cli.conftest import settings_of
from tests.conftest import make_sql_backend
from tests.worker.harness import until

ROOT = Path(__file__).resolve().parents[2]


class Claimers:
    """Processes that claim, and the ledger of what they ran."""

    def __init__(self, alias, slots, hold, *limits, fair=False):
        self._env = os.environ | {"COMMAND_SETTINGS": json.dumps(settings_of(alias))}
        told = {"slots": slots, "hold": hold, "limits": [_told(one) for one in limits], "fair": fair}
        self._words = [sys.executable, "-m", "tests.limits.claimer", json.dumps(told)]
        self.running, self.events, self.kills = [], [], 0
        self._readers = []

    def start(self, count):
        for _ in range(count):
            process = subprocess.Popen(self._words, cwd=ROOT, env=self._env, stdout=subprocess.PIPE, text=True)
            reader = threading.Thread(target=self._read, args=(process,))
            reader.start()
            self.running.append(process)
            self._readers.append(reader)

    def _read(self, process):
        with process.stdout:
            for line in process.stdout:
                sign, job_id, moment, key = line.split()
                self.events.append((float(moment), sign, job_id, key, process.pid))

    def kill(self, process):
        """Kill a process. What it held ends at the kill, at the latest."""
        self.running.remove(process)
        process.send_signal(signal.SIGKILL)
        process.wait()
        self.kills += 1

    def stop(self):
        for process in list(self.running):
            self.kill(process)
        for reader in self._readers:
            reader.join(10)

    def most_at_once(self, by_key=False):
        """Return how many jobs ran at once, as far as the ledger proves it."""
        ended = {(job_id, pid) for _, sign, job_id, _, pid in self.events if sign == "-"}
        running, most = defaultdict(int), 0
        for _, sign, job_id, key, pid in sorted(self.events):
            if (job_id, pid) in ended:  # nobody knows how long a killed process ran the others
                account = key if by_key else ""
                running[account] += 1 if sign == "+" else -1
                most = max(most, running[account])
        return most


def _told(limit):
    return {name: value for name, value in asdict(limit).items() if name != "place"}


@pytest.fixture
def claimers(alias):
    made = []

    def make(slots, hold, *limits):
        made.append(Claimers(alias, slots, hold, *limits))
        return made[-1]

    yield make
    for one in made:
        one.stop()


_COMPLETED = Filter(statuses=frozenset({JobStatus.COMPLETED}))


def test_killed_processes_neither_leak_nor_overshoot(queue, claimers):
    queue.enqueue([draft(tenant=name, concurrency_key=f'{{"tenant":"{name}"}}') for name in "abcd" * 150])
    ours = claimers(8, 0.004, at_once(5), at_once(2, key="tenant"))
    ours.start(4)
    until(lambda: len(ours.events) > 100, 30, "claims")
    for _ in range(8):
        time.sleep(random.uniform(0.05, 0.2))
        ours.kill(random.choice(ours.running))
        ours.start(1)
    before = queue.jobs.count(_COMPLETED)
    until(lambda: queue.jobs.count(_COMPLETED) >= min(before + 60, 600), 30, "slots that are free again")
    ours.stop()
    assert ours.most_at_once() <= 5
    assert ours.most_at_once(by_key=True) <= 2
    assert ours.most_at_once() >= 3  # all of this is about something


def test_no_window_sees_more_starts_than_the_rate(queue, claimers):
    queue.enqueue([draft() for _ in range(400)])
    ours = claimers(8, 0.0, rate(30, per=0.5))
    ours.start(3)
    until(lambda: len(ours.events) > 2, 30, "claims")
    time.sleep(3)
    ours.stop()
    starts = sorted(Job.objects.using(queue.alias).exclude(started_at=None).values_list("started_at", flat=True))
    seconds = [(one - starts[0]).total_seconds() for one in starts]
    assert max(sum(begin <= one < begin + 0.5 for one in seconds) for begin in seconds) <= 30
    assert len(starts) >= 0.9 * 30 * (seconds[-1] // 0.5)


@pytest.mark.postgres
def test_without_the_lock_two_workers_overshoot(databases, monkeypatch):
    lock = "WHERE pg_try_advisory_xact_lock(hashtextextended('job_queue ' || place, 0))"
    assert lock in limit_statements.LOCK
    monkeypatch.setattr(limit_statements, "LOCK", limit_statements.LOCK.replace(lock, ""))
    for name in ("at_once", "rate", "of_one_key"):
        backend = make_sql_backend("postgres", VirtualClock())
        with pytest.raises(AssertionError):
            getattr(BackendContract(), f"test_race_claim_claim_{name}")(backend)
        Job.objects.using("postgres").all().delete()
        Start.objects.using("postgres").all().delete()
