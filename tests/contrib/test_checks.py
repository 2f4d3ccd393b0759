"""Tests of the contrib apps' system checks."""

from __future__ import annotations

import pytest

from jobqueue import conf
from jobqueue.contrib.commands.checks import check_commands
from jobqueue.contrib.files.checks import check_root
from jobqueue.contrib.webhooks.checks import check_time_limit


@pytest.mark.parametrize(
    ("check", "jobqueue", "found"),
    [
        (check_root, {}, ["jobqueue_files.W001"]),
        (check_root, {"FILES_ROOT": "{tmp}"}, []),
        (check_root, {"FILES_ROOT": "{tmp}/missing"}, ["jobqueue_files.W002"]),
        (check_root, {"FILES_ROOT": "{tmp}/media/private"}, ["jobqueue_files.W003"]),
        (check_root, {"FILES_ROOT": "relative"}, []),  # which is jobqueue.E003
        (check_commands, {}, []),
        (check_commands, {"COMMANDS": ["tally", "clearsessions"]}, []),
        (check_commands, {"COMMANDS": ["talli", "shell"]}, ["jobqueue_commands.W001", "jobqueue_commands.W002"]),
        (check_time_limit, {}, []),
        (check_time_limit, {"WEBHOOK_TIMEOUT": 30}, ["jobqueue_webhooks.W001"]),
    ],
)
def test_a_mistake_is_told(check, jobqueue, found, settings, tmp_path):
    (tmp_path / "media" / "private").mkdir(parents=True)
    settings.MEDIA_ROOT = str(tmp_path / "media")
    if found == [] and "FILES_ROOT" in jobqueue:
        settings.MEDIA_ROOT = ""
    settings.JOBQUEUE = {
        key: value.format(tmp=tmp_path) if isinstance(value, str) else value for key, value in jobqueue.items()
    }
    messages = check()
    assert [one.id for one in messages] == found
    assert all(one.hint for one in messages)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("FILES_ROOT", "files"),
        ("FILES_ROOT", 7),
        ("COMMANDS", "migrate"),
        ("COMMANDS", [""]),
        ("COMMANDS_UNATTENDED", 1),
        ("WEBHOOK_NETWORKS", ["10.0.0.1/8"]),
        ("WEBHOOK_NETWORKS", "10.0.0.0/8"),
        ("WEBHOOK_MAX_FAILURES", 0),
        ("WEBHOOK_LOG_FOR", -1),
        ("EMAIL_VIA", None),
    ],
)
def test_a_value_that_will_not_do_is_told(key, value):
    assert not conf.SETTINGS[key].accepts(value)
    assert conf.SETTINGS[key].accepts(conf.SETTINGS[key].default)
