"""The app of the command jobs."""

from __future__ import annotations

from django.apps import AppConfig
from django.core import checks
from django.utils.translation import gettext_lazy as _

from jobqueue import conf
from jobqueue.contrib.commands.checks import check_commands


class CommandsConfig(AppConfig):
    """Brings ``run_command``, which runs the commands that ``JOBQUEUE["COMMANDS"]`` lists, and no other."""

    name = "jobqueue.contrib.commands"
    label = "jobqueue_commands"
    verbose_name = _("Command jobs")

    def ready(self) -> None:
        checks.register(check_commands, conf.CHECKS)
