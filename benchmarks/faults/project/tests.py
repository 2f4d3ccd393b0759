"""A test of the project, which must enqueue into its test database only."""

from __future__ import annotations

from django.apps import apps
from django.test import TestCase

from benchmarks.faults.jobs import short


class TestEnqueue(TestCase):
    """Enqueues like a project's tests."""

    def test_a_job_is_there_and_nobody_runs_it(self) -> None:
        short.enqueue(seconds=0.0)
        statuses = apps.get_model("jobqueue", "Job")._default_manager.values_list("status", flat=True)
        self.assertEqual(list(statuses), ["queued"])  # noqa: PT009 - the test runner of Django is unittest's
