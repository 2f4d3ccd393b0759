"""Tests of the assertions about what was enqueued, and of what they say if they fail."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from jobqueue import InvalidOption, UnknownJobType
from jobqueue.testing import assert_enqueued, assert_not_enqueued, drain, enqueued_jobs, perform
from tests.kit import handlers

pytestmark = pytest.mark.usefixtures("rolled_back")


def test_a_job_is_found_by_some_of_its_fields_in_any_form():
    receipt = handlers.order.enqueue(orderNumber=7, price="2.50")
    for payload in ({}, {"number": 7}, {"orderNumber": "7"}, {"price": 2.5}, {"due": datetime(2026, 1, 1, tzinfo=UTC)}):
        assert assert_enqueued(handlers.order, **payload).id == receipt.id
    assert assert_enqueued(handlers.order, handlers.Order(orderNumber=7, price="2.50")).id == receipt.id
    assert assert_enqueued("kit.order", number=7).payload["orderNumber"] == 7
    assert_not_enqueued(handlers.order, number=8)
    assert_not_enqueued(handlers.add)


def test_a_job_that_has_run_was_enqueued():
    handlers.add.enqueue("Ada")
    drain()
    assert assert_enqueued(handlers.add, name="Ada").status == "completed"
    assert [job.type for job in enqueued_jobs()] == ["kit.add"]


def test_the_nearest_miss_is_shown_as_a_diff():
    handlers.order.enqueue(orderNumber=1, price="3")
    handlers.order.enqueue(orderNumber=7, price="3")
    with pytest.raises(AssertionError) as caught:
        assert_enqueued(handlers.order, number=7, price="4")
    told = str(caught.value).splitlines()
    assert told[0].startswith("2 jobs 'kit.order' are stored, but none with these values. The nearest is ")
    assert told[0].endswith(", queued in 'parcels' (- wanted, + stored):")
    assert told[1:] == ["  number = 7", "- price = Decimal('4')", "+ price = Decimal('3')"]


def test_options_are_compared_where_they_are_named():
    handlers.order.using(delay=60, tenant="acme").enqueue(orderNumber=7)
    assert_enqueued(handlers.order.using(delay=timedelta(minutes=1), tenant="acme"), number=7)
    assert_enqueued(handlers.order.using(delay=60))
    with pytest.raises(AssertionError) as caught:
        assert_enqueued(handlers.order.using(queue="rare"), number=7)
    assert str(caught.value).splitlines()[1:] == [
        "- option queue = 'rare'",
        "+ option queue = 'parcels'",
        "  number = 7",
    ]


def test_without_a_job_of_the_type_the_others_are_listed():
    with pytest.raises(AssertionError, match=r"^No job 'kit.order' is stored. Stored jobs: none.$"):
        assert_enqueued(handlers.order)
    handlers.add.enqueue("Ada")
    handlers.add.enqueue("Bob")
    with pytest.raises(AssertionError, match=r"Stored jobs: 2 kit.add.$"):
        assert_enqueued(handlers.order, number=7)


def test_a_job_that_should_not_be_there_is_shown():
    handlers.add.enqueue("Ada")
    with pytest.raises(AssertionError, match=r"1 job 'kit.add' is stored:\n.+ queued in 'default': .+Ada"):
        assert_not_enqueued(handlers.add, name="Ada")


@pytest.mark.parametrize(
    "look", [assert_enqueued, assert_not_enqueued, enqueued_jobs, perform], ids=lambda one: one.__name__
)
def test_a_name_that_nobody_has_brings_the_nearest(look):
    with pytest.raises(UnknownJobType, match=r"'kit.ordr'. Did you mean 'kit.order'"):
        look("kit.ordr")


@pytest.mark.parametrize("look", [assert_enqueued, assert_not_enqueued], ids=lambda one: one.__name__)
def test_a_field_that_no_payload_has_brings_the_nearest(look):
    with pytest.raises(InvalidOption, match=r"numbr is not a field of the payload. Did you mean 'number'\?"):
        look(handlers.order, numbr=7)
    with pytest.raises(InvalidOption, match=r"nam is not a field of the payload. Did you mean 'name'\?"):
        look(handlers.add, nam="Ada")
