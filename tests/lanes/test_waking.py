"""Tests of lanes that go on: whatever makes room in a lane wakes the workers that may use it."""

from __future__ import annotations

import pytest

from jobqueue import control
from jobqueue.backends import current
from jobqueue.records import Filter
from jobqueue.states import JobStatus
from jobqueue.testing.contract.harness import bury, draft, put_all, take_one
from jobqueue.testing.contract.lanes import in_lane
from tests.worker.conftest import jobs, ledger, start_worker  # noqa: F401 - fixtures
from tests.worker.harness import until, until_at_rest

ORDERED = {"QUEUES": {"imports": {"ordered": True, "strict": True}}}
#: Longer than a test waits: whoever starts sooner was woken.
NEVER_POLLS = ("--poll-interval", "300", "--processes", "1", "-c", "1")


def held(name, **values):
    """Return a draft of a job that waits for a gate."""
    return in_lane(type="hold", payload=f'{{"gate": "{name}"}}', **values)


@pytest.mark.parametrize("alias", [pytest.param("postgres", marks=pytest.mark.postgres)], indirect=True)
def test_a_worker_that_takes_another_job_instead_wakes_one_for_the_lane(queue, ledger, start_worker):  # noqa: F811
    first, second = put_all(queue, held("a"), held("b"))
    start_worker(*NEVER_POLLS, jobqueue=ORDERED)
    until(lambda: ledger.started(first), what="the first job of the lane")
    (other,) = put_all(queue, draft("hold", queue="other", priority=1, payload='{"gate": "c"}'))
    idle = start_worker(*NEVER_POLLS, "--queue", "imports", jobqueue=ORDERED)
    until_at_rest(idle.pid)  # it has looked, and found that the lane is held
    ledger.open_gate("a")
    until(lambda: ledger.started(second), 20, "the second job of the lane")
    assert ledger.started(other)
    (ended,) = (one["at"] for one in ledger.entries("end") if one["job"] == first)
    (started,) = (one["at"] for one in ledger.entries("start") if one["job"] == second)
    assert 0 <= started - ended < 5
    for gate in "bc":
        ledger.open_gate(gate)
    until(lambda: len(ledger.entries("end")) == 3, what="their ends")


@pytest.mark.parametrize("options", [ORDERED, {}], ids=["ordered", "not ordered"])
@pytest.mark.parametrize("verb", ["purge", "purge_matching", "cancel", "cancel_matching"])
def test_what_removes_a_job_from_a_lane_wakes_workers(queue, settings, monkeypatch, options, verb):
    dead, queued = put_all(queue, in_lane(), in_lane())
    bury(queue, take_one(queue))
    settings.JOBQUEUE = settings.JOBQUEUE | options
    woken = []
    monkeypatch.setattr(type(current()), "wake", lambda *_: woken.append(verb))
    job_id, status = (dead, JobStatus.DEAD_LETTER) if "purge" in verb else (queued, JobStatus.QUEUED)
    given = Filter(statuses=frozenset({status})) if verb.endswith("matching") else [job_id]
    assert getattr(control, verb)(given).done == (job_id,)
    assert woken == [verb] * bool(options)
    assert getattr(control, verb)(given).done == ()
    assert len(woken) == bool(options)
