"""The app of the command jobs."""

from __future__ import annotations

from django.apps import AppConfig
from django.core import checks
from django.utils.translation import gettext_lazy as _

from jobqueue import conf
from jobqueue.contrib.commands.checks import check_commands


class CommandsConfig(AppConfig):
    """Provides ``run_command``, which only runs the commands that ``JOBQUEUE["COMMANDS"]`` lists."""

    name = "jobqueue.contrib.commands"
    label = "jobqueue_commands"
    verbose_name = _("Command jobs")

    def ready(self) -> None:
        checks.register(check_commands, conf.CHECKS)
