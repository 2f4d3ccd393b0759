"""Tests of processes that use no tracing library."""

from __future__ import annotations

import subprocess
import sys

from tests.worker.harness import ROOT

SCRIPT = """
import sys
import django
django.setup()
import tests.app.worker_jobs
import jobqueue.worker.start
from jobqueue import tracing
from jobqueue.handlers import ambient
assert ambient.capture() is None
with ambient.restore('{"traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}'):
    pass
assert tracing.in_use() == ()
tracing.prepare()
tracing.flush(1.0)
loaded = {name.partition(".")[0] for name in sys.modules} & {"opentelemetry", "sentry_sdk"}
assert not loaded, loaded
assert not [name for name in sys.modules if name.startswith(("jobqueue.tracing.open", "jobqueue.tracing.sentry"))]
"""


def test_a_project_that_traces_nothing_loads_no_library():
    environment = {
        "DJANGO_SETTINGS_MODULE": "tests.settings",
        "PYTHONPATH": str(ROOT),
        "JOBQUEUE_TEST_POSTGRES": "none",
    }
    ended = subprocess.run([sys.executable, "-c", SCRIPT], env=environment, cwd=ROOT, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
