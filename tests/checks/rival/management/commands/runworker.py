"""A command that runs no jobs."""

from __future__ import annotations

from django.core.management.base import BaseCommand


class Command(BaseCommand):
    """Does nothing."""

    def handle(self, **_):
        return None
