"""Tests of faults from the catalogue, for a few seconds each: afterwards every job is accounted for.

Some of them always, those by which a change is most likely to be caught; all with ``JOBQUEUE_TEST_FAULTS=all``.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from benchmarks.databases import VARIABLE
from benchmarks.faults.catalogue import catalogue
from benchmarks.faults.laboratory import Trial
from benchmarks.faults.trials import try_out
from benchmarks.faults.verdict import Outcome

ALWAYS = {"T03b", "T05", "T13", "T26"}
#: What harms the worker alone comes to the same on either database; the command tries both.
OF_THE_WORKER = {"T07", "T08", "T10", "T11"}
ASKED = set(catalogue()) if os.environ.get("JOBQUEUE_TEST_FAULTS") == "all" else ALWAYS
TRIALS = [
    pytest.param(number, database, marks=getattr(pytest.mark, database), id=f"{number}-{database}")
    for number, one in catalogue().items()
    if number in ASKED
    for database in (one.databases[:1] if number in OF_THE_WORKER else one.databases)
]


#: Trials wait for most of their time, so that several go on at once.
AT_ONCE = 3


@pytest.fixture(scope="module")
def verdicts(request):
    """What the trials come to that are asked for, by number and database; all of them begin with the first."""
    with pytest.MonkeyPatch.context() as patch, ThreadPoolExecutor(AT_ONCE) as pool:
        if given := os.environ.get("JOBQUEUE_TEST_POSTGRES"):
            patch.setenv(VARIABLE, given)
        mine = [item for item in request.session.items if item.module is request.module]
        asked = [item.callspec.params for item in mine if not item.get_closest_marker("skip")]
        keys = [(one["number"], one["database"]) for one in asked]
        yield {key: pool.submit(try_out, trial(*key)) for key in keys}
        pool.shutdown(cancel_futures=True)


def trial(number, database):
    return Trial(fault=number, database=database, seconds=1, seed="ci", quick=True)


def not_run(verdict):
    """Skip what this machine cannot inject; fail if it is for want of a Postgres that was asked for."""
    lacks = any(need() for need in catalogue()[verdict.fault].needs)
    required = verdict.database in os.environ.get("JOBQUEUE_TEST_REQUIRE", "").split(",")
    (pytest.fail if required and not lacks else pytest.skip)(f"NOT RUN: {'; '.join(verdict.why)}")


@pytest.mark.parametrize(("number", "database"), TRIALS)
def test_after_a_fault_every_job_is_accounted_for(verdicts, number, database):
    verdict = verdicts[number, database].result()
    if verdict.outcome is Outcome.NOT_RUN:
        not_run(verdict)
    assert verdict.why == ()
    assert verdict.outcome is Outcome.HELD
    assert verdict.injections > 0
    assert verdict.account.accepted > 0
    assert verdict.account.runs >= verdict.account.accepted
