"""Runs packages that others wrote for ``django.tasks`` on this queue, unchanged.

    python -m tests.suites.packages

It needs an environment with django-pictures, whose tasks scale images, and django-tasks-monitor, whose receivers record
what becomes of tasks. An image is uploaded in a transaction and scaled by a worker with a process of its own.
"""

from __future__ import annotations

import sys
import tempfile
from io import BytesIO
from pathlib import Path

import django
from django.conf import settings
from django.core.files.base import ContentFile
from django.core.management import call_command
from django.db import transaction


def configure(folder):
    """Make this process a project with the two packages."""
    settings.configure(
        SECRET_KEY="for tests",
        USE_TZ=True,
        DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": folder / "queue.sqlite3"}},
        DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
        MEDIA_ROOT=folder / "media",
        JOBQUEUE={"RUNTIME_DIR": str(folder)},
        PICTURES={"FILE_TYPES": ["WEBP"]},
        TASKS={
            "default": {
                "BACKEND": "jobqueue.contrib.django_tasks.JobQueueBackend",
                "QUEUES": ["default", "pictures"],
            }
        },
        INSTALLED_APPS=[
            *("django.contrib.contenttypes", "django.contrib.auth"),
            *("jobqueue", "jobqueue.contrib.django_tasks", "pictures", "tasks_monitor"),
        ],
    )
    django.setup()
    call_command("migrate", verbosity=0)


def scale(folder):
    """Upload an image, let a worker scale it, and return what the packages made of that."""
    from django.core.files.storage import default_storage
    from pictures.models import PillowPicture
    from pictures.tasks import process_picture
    from PIL import Image
    from tasks_monitor.models import TaskRecord

    picture = PillowPicture("photo.png", "WEBP", "1/1", default_storage, 40)
    file = BytesIO()
    Image.new("RGB", (80, 60)).save(file, "PNG")
    with transaction.atomic():
        default_storage.save("photo.png", ContentFile(file.getvalue()))
        process_picture(
            storage=default_storage.deconstruct(), file_name="photo.png", sender=None, new=[picture.deconstruct()]
        )
    call_command("runworker", "--drain", "--skip-checks", verbosity=0)
    record = TaskRecord.objects.get()
    print(f"django-pictures wrote {picture.name}, {Image.open(picture.path).size}")  # noqa: T201
    print(f"django-tasks-monitor recorded {record.task_path}: {record.status}, {record.attempts} attempt")  # noqa: T201
    return picture.path.exists() and record.status == "SUCCESSFUL" and record.attempts == 1


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        configure(Path(made))
        sys.exit(0 if scale(Path(made)) else 1)
