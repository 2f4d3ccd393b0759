"""An app with tasks for the tests of ``jobqueue.contrib.django_tasks``."""

from __future__ import annotations
