"""Tests of text that isn't UTF-8, which SQLite stores and the admin's pages must show."""

from __future__ import annotations

import pytest
from django.contrib.admin.utils import quote
from django.db import connections
from django.urls import reverse

from jobqueue.testing.contract.harness import put
from tests.admin.conftest import ALL, list_address
from tests.conftest import ON_SQLITE

COLUMNS = ["type", "queue", "tenant", "error", "payload", "result", "context", "progress", "lease_owner", "end_reason"]
DATA = {"payload", "result", "context", "progress"}


def forge(queue, column, status):
    job_id = put(queue)
    value = b'{"x": "a\xff"}' if column in DATA else b"a\xff"
    with connections["default"].cursor() as cursor:
        cursor.execute(
            f"UPDATE job_queue SET status = %s, {column} = CAST(x'{value.hex()}' AS TEXT) WHERE id = %s",
            [status, job_id],
        )
    return job_id


@ON_SQLITE
@pytest.mark.parametrize("status", ["queued", "completed", "dead_letter"])
@pytest.mark.parametrize("column", COLUMNS)
def test_each_page_shows_what_is_text_of_it(queue, sign_in, column, status):
    operator = sign_in(*ALL, "pause_queue", is_superuser=True)
    job_id = forge(queue, column, status)
    pages = [
        reverse("admin:jobqueue_job_changelist"),
        reverse("admin:jobqueue_job_change", args=[quote(job_id)]),
        reverse("admin:jobqueue_deadletter_changelist"),
        list_address("deadletter"),
        reverse("admin:jobqueue_queue_changelist"),
        reverse("admin:jobqueue_worker_changelist"),
        reverse("admin:jobqueue_dashboard_changelist"),
    ]
    assert {page: operator.client.get(page).status_code for page in pages} == dict.fromkeys(pages, 200)
