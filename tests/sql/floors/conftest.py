"""What tests of floors leave: no dead rows, which later tests would walk through where nothing vacuums."""

from __future__ import annotations

import pytest
from django.db import connections


@pytest.fixture(autouse=True)
def truncated(request, databases):
    yield
    if request.node.get_closest_marker("postgres"):
        with connections["postgres"].cursor() as cursor:
            cursor.execute("TRUNCATE job_queue CASCADE")
