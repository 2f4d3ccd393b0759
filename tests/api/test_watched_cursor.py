"""Tests of Django's cursor, whose statements are logged, and refused where Django refuses them."""

from __future__ import annotations

import pytest
from django.db import connections, transaction
from django.db.transaction import TransactionManagementError
from django.test import SimpleTestCase
from django.test.testcases import DatabaseOperationForbidden
from django.test.utils import CaptureQueriesContext

from jobqueue.models import Job
from tests.app.jobs import send_welcome


def test_a_captured_enqueue_is_one_query(queue):
    send_welcome.enqueue(7)
    with CaptureQueriesContext(connections[queue.alias]) as captured:
        receipt = send_welcome.enqueue(8)
    inserts = [query["sql"] for query in captured if query["sql"].lstrip().startswith("INSERT INTO job_queue")]
    assert len(inserts) == 1
    assert receipt.id in inserts[0]


def test_a_wrapper_around_the_cursor_sees_an_enqueue_and_may_refuse_it(queue):
    def refuse(execute, sql, params, many, context):
        raise PermissionError(sql)

    with pytest.raises(PermissionError, match="INSERT INTO job_queue"):  # noqa: SIM117 - the wrapper comes off first
        with connections[queue.alias].execute_wrapper(refuse):
            send_welcome.enqueue(7)
    assert not Job.objects.using(queue.alias).exists()


def test_a_test_without_a_database_takes_no_job(queue):
    """Django puts something else in the cursor's place there, also where a connection is open already."""

    class Forbidden(SimpleTestCase):
        def test(self):
            send_welcome.enqueue(7)

    connections[queue.alias].ensure_connection()
    Forbidden.setUpClass()
    try:
        with pytest.raises(DatabaseOperationForbidden, match="not allowed"):
            Forbidden("test").test()
    finally:
        Forbidden.doClassCleanups()
    assert not Job.objects.using(queue.alias).exists()


def test_a_watched_enqueue_meets_its_duplicate(queue):
    first = send_welcome.using(idempotency_key="seven").enqueue(7)
    with CaptureQueriesContext(connections[queue.alias]):
        again = send_welcome.using(idempotency_key="seven").enqueue(7)
    assert (again.id, again.created) == (first.id, False)


def test_a_transaction_that_must_roll_back_takes_no_job(queue):
    with queue.atomic():
        transaction.set_rollback(True, using=queue.alias)
        with pytest.raises(TransactionManagementError):
            send_welcome.enqueue(7)
        with pytest.raises(TransactionManagementError):
            send_welcome.enqueue_many([{"user_id": 7}, {"user_id": 8}])
    assert not Job.objects.using(queue.alias).exists()
