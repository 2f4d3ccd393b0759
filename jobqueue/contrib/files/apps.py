"""The app of the file jobs."""

from __future__ import annotations

from django.apps import AppConfig
from django.core import checks
from django.utils.translation import gettext_lazy as _

from jobqueue import conf
from jobqueue.contrib.files.checks import check_root


class FilesConfig(AppConfig):
    """Provides ``create_file`` and ``delete_file``. They refuse to run until FILES_ROOT is set."""

    name = "jobqueue.contrib.files"
    label = "jobqueue_files"
    verbose_name = _("File jobs")

    def ready(self) -> None:
        checks.register(check_root, conf.CHECKS)
