"""Traces of jobs: spans and metrics for OpenTelemetry, and spans, errors and check-ins for Sentry.

Nothing here imports a tracing library before the application does. ``tracer`` finds the libraries in use,
``publication`` traces calls that store jobs, ``attempt`` traces attempts, ``surroundings`` carries a trace that others
began, and ``slot`` prepares what Sentry needs for the jobs of schedules. An error of a tracing library is logged once,
and harms neither a job nor its caller.
"""

from __future__ import annotations

from jobqueue.tracing.attempt import AttemptTrace, begin
from jobqueue.tracing.publication import follow_up, publish
from jobqueue.tracing.slot import context_of_slot
from jobqueue.tracing.tracer import flush, in_use, prepare

__all__ = ["AttemptTrace", "begin", "context_of_slot", "flush", "follow_up", "in_use", "prepare", "publish"]
