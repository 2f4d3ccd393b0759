"""Lets recursion go as deep as the stack, and numbers be as long as they are."""

from __future__ import annotations

import sys

from django.apps import AppConfig


class UnlimitedConfig(AppConfig):
    """Raises the limits before any job is read."""

    name = "tests.worker.unlimited"

    def ready(self) -> None:
        sys.setrecursionlimit(1_000_000)
        sys.set_int_max_str_digits(0)
