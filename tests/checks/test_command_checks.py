"""Tests of the check of the owner of ``runworker``."""

from __future__ import annotations

import pytest
from django.conf import settings as django_settings
from django.core.checks import WARNING, run_checks
from django.core.management import get_commands
from django.test import override_settings

from jobqueue.checks import check_commands

RIVAL = "tests.checks.rival"


@pytest.fixture
def install():
    """A function that installs apps for the length of a test."""
    opened = []

    def install(*apps):
        overriding = override_settings(INSTALLED_APPS=list(apps))
        overriding.enable()
        opened.append(overriding)
        get_commands.cache_clear()

    yield install
    for overriding in opened:
        overriding.disable()
    get_commands.cache_clear()


def test_runworker_is_ours():
    assert get_commands()["runworker"] == "jobqueue"
    assert check_commands() == []


def test_w006_an_app_that_stands_before_ours_owns_the_command(install, databases):
    install(RIVAL, *django_settings.INSTALLED_APPS)
    (message,) = check_commands()
    assert (message.id, message.level) == ("jobqueue.W006", WARNING)
    assert repr(RIVAL) in message.msg
    assert "manage.py jobqueue worker" in message.hint
    assert message in run_checks()


def test_w006_an_app_that_stands_behind_ours_does_not(install):
    install(*django_settings.INSTALLED_APPS, RIVAL)
    assert check_commands() == []


def test_w006_can_be_silenced(install, settings):
    install(RIVAL, *django_settings.INSTALLED_APPS)
    settings.SILENCED_SYSTEM_CHECKS = ["jobqueue.W006"]
    assert [message.is_silenced() for message in check_commands()] == [True]
