"""Tests of lanes in the admin: on the page of a queue, and on that of a job."""

from __future__ import annotations

from urllib.parse import urlencode

import pytest

from jobqueue.backends import current
from jobqueue.testing.contract.harness import put_all, take
from jobqueue.testing.contract.lanes import ORDERED, in_lane
from tests.admin.conftest import told


@pytest.fixture
def ordered(alias, settings):
    """The backend of a project with an ordered queue."""
    settings.JOBQUEUE = {"DATABASE": alias, "QUEUES": {"imports": {"ordered": True}}}
    return current()


def test_pages_name_the_job_that_holds_a_lane(ordered, sign_in):
    running, waiting = put_all(ordered, in_lane(), in_lane())
    take(ordered, entries=("imports",), queue_options=ORDERED)
    reader = sign_in("view_job")
    page = told(reader.get(f"/admin/jobqueue/queue/one/?{urlencode({'queue': 'imports'})}"))
    assert f"* 1 1 {waiting} {running} runs" in " ".join(page.split())
    page = told(reader.get(f"/admin/jobqueue/job/{waiting}/change/"))
    assert f"Its lane waits for {running}, which runs." in page


def test_a_queue_without_order_has_no_lanes(ordered, sign_in):
    put_all(ordered, in_lane(queue="mail", lane=None))
    page = told(sign_in("view_job").get(f"/admin/jobqueue/queue/one/?{urlencode({'queue': 'mail'})}"))
    assert "Lanes" not in page
