"""Tests of lanes in the admin: on the page of a queue, and on that of a job."""

from __future__ import annotations

from html import unescape
from urllib.parse import urlencode

import pytest
from django.urls import reverse
from django.utils.html import strip_tags

from jobqueue.backends import current
from jobqueue.testing.contract.harness import put_all, take
from jobqueue.testing.contract.lanes import ORDERED, in_lane


@pytest.fixture
def ordered(alias, settings):
    """The backend of a project with an ordered queue."""
    settings.JOBQUEUE = {"DATABASE": alias, "QUEUES": {"imports": {"ordered": True}}}
    return current()


def page_of(queue):
    return f"{reverse('admin:jobqueue_queue_one')}?{urlencode({'queue': queue})}"


def words(response):
    """The text of a page, without its tags."""
    return " ".join(unescape(strip_tags(response.content.decode())).split())


def test_pages_name_the_job_that_holds_a_lane(ordered, sign_in):
    running, waiting = put_all(ordered, in_lane(), in_lane())
    take(ordered, entries=("imports",), queue_options=ORDERED)
    reader = sign_in("view_job")
    page = words(reader.client.get(page_of("imports")))
    assert f"*11{waiting}{running} runs" in page  # the cells of a row
    assert f"Its lane waits for {running}, which runs." in words(reader.page(waiting))


def test_a_queue_without_order_has_no_lanes(ordered, sign_in):
    put_all(ordered, in_lane(queue="mail", lane=None))
    assert "Lanes" not in words(sign_in("view_job").client.get(page_of("mail")))
