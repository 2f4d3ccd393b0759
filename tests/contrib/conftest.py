"""Fixtures of the contrib apps' tests, which run jobs in this process or with a real worker."""

from __future__ import annotations

import pytest

from jobqueue import JobContext
from tests.worker.conftest import jobs, ledger, start_worker

__all__ = ["jobs", "ledger", "start_worker"]


def attempt(job_type="a job", number=1, job_id="01J8ZQ4Y3M6V7K2N5P8R1T4W6X", fence=None):
    """The context of an attempt that no worker attends."""
    return JobContext(
        job_id=job_id, job_type=job_type, queue="default", attempt=number, max_retries=3, fence=fence or number
    )


@pytest.fixture
def configure(settings, alias):
    """A function that sets keys of JOBQUEUE, on each database in turn."""

    def change(**keys):
        settings.JOBQUEUE = {"DATABASE": alias, **keys}

    change()
    return change
