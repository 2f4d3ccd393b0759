# mypy: disable-error-code="import-not-found,untyped-decorator"
"""The handlers as tasks of Django's own framework. Import it after the settings."""

from __future__ import annotations

from django.tasks import task

from benchmarks.peers.adapters import handlers


@task
def resize_image(image_id: int, width: int) -> None:
    """Do nothing."""
    handlers.resize_image(image_id, width)


@task
def nap(image_id: int, width: int) -> None:
    """Sleep for a while."""
    handlers.nap(image_id, width)


@task
def stamp(path: str) -> None:
    """Say when it began."""
    handlers.stamp(path)
