"""The removal of the limits of recursion and of a number's digits."""

from __future__ import annotations

import sys

from django.apps import AppConfig


class UnlimitedConfig(AppConfig):
    """Raises the limits before any job is read."""

    name = "tests.worker.unlimited"

    def ready(self) -> None:
        sys.setrecursionlimit(1_000_000)
        sys.set_int_max_str_digits(0)
