"""Tests of a lane across processes: producers that commit late, and workers that are killed."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
from collections import defaultdict
from pathlib import Path

import pytest

from jobqueue.models import Job
from jobqueue.states import JobStatus
from tests.cli.conftest import settings_of
from tests.worker.harness import until

ROOT = Path(__file__).resolve().parents[2]
PRODUCERS, EACH, WORKERS, KILLS = 3, 25, 2, 3


class Processes:
    """Processes, and what they said: for each job the moments of each event."""

    def __init__(self, alias):
        self._env = os.environ | {"COMMAND_SETTINGS": json.dumps(settings_of(alias))}
        self.events = defaultdict(lambda: defaultdict(list))
        self.running, self._readers = [], []

    def start(self, *words):
        command = [sys.executable, "-m", "tests.lanes.process", *words]
        process = subprocess.Popen(command, cwd=ROOT, env=self._env, stdout=subprocess.PIPE, text=True)
        reader = threading.Thread(target=self._read, args=(process,))
        reader.start()
        self._readers.append(reader)
        self.running.append(process)
        return process

    def _read(self, process):
        with process.stdout:
            for line in process.stdout:
                what, job_id, moment = line.split()
                self.events[job_id][what].append(float(moment))

    def kill(self, process):
        self.running.remove(process)
        process.send_signal(signal.SIGKILL)
        process.wait()

    def stop(self):
        for process in list(self.running):
            self.kill(process)
        for reader in self._readers:
            reader.join(10)


@pytest.fixture
def processes(alias):
    made = Processes(alias)
    yield made
    made.stop()


@pytest.mark.postgres
@pytest.mark.parametrize("alias", ["postgres"], indirect=True)
def test_no_job_passes_an_earlier_one_that_commits_late(alias, processes):
    producers = [processes.start("produce", str(EACH)) for _ in range(PRODUCERS)]
    workers = [processes.start("work") for _ in range(WORKERS)]
    jobs = Job.objects.using(alias)
    for number in range(1, KILLS + 1):
        until(lambda many=8 * number: jobs.filter(status="completed").count() >= many, 60, "completed jobs")
        victim = workers.pop(random.randrange(len(workers)))
        processes.kill(victim)
        workers.append(processes.start("work"))
    for one in producers:
        assert one.wait(60) == 0
    until(lambda: not jobs.exclude(status=JobStatus.COMPLETED.value).exists(), 60, "the end of all jobs")
    processes.stop()
    _judge(processes.events, dict(jobs.values_list("id", "parallel")))


def _judge(events, parallel):
    """Check the order by what the processes said: A is before B if it was committed before B's commit began."""
    assert set(parallel) == {job_id for job_id, told in events.items() if told["b"]}
    assert not all(parallel.values())
    pairs = 0
    for later in parallel:
        for earlier in parallel:
            is_before = events[earlier]["c"] and events[earlier]["c"][0] < events[later]["b"][0]
            if is_before and not (parallel[earlier] and parallel[later]):
                pairs += 1
                ended = max([*events[earlier]["+"], *events[earlier]["-"]])
                assert ended < min([*events[later]["+"], *events[later]["-"]]), (earlier, later)
    assert pairs > 100  # all of this is about something
