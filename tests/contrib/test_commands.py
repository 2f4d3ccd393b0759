"""Tests of commands as jobs: only allowed ones run, with their output; typed ones can be enqueued."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys

import pytest
from django.core.management import CommandError, call_command

from jobqueue import Discard, JobStatus
from jobqueue.contrib.commands.jobs import CommandFailed, RunCommand, run_command
from jobqueue.contrib.commands.output import LastOutput
from jobqueue.models import Job
from tests.contrib.desk.management.commands.tally import Command
from tests.worker.harness import ROOT, database_of

ALLOWED = {"COMMANDS": ["tally"]}


def run(*arguments, command="tally"):
    return run_command(RunCommand(command=command, arguments=list(arguments)))


@pytest.fixture
def allowed(settings):
    settings.JOBQUEUE = ALLOWED


def test_what_a_command_writes_is_the_result(allowed):
    assert run("a", "b", "--times", "2") == {"output": "a b\na b\n", "left_out": 0}


def test_of_much_output_the_end_is_kept(settings):
    settings.JOBQUEUE = ALLOWED | {"COMMAND_OUTPUT_BYTES": 100}
    result = run("äöü", "--times", "100000")
    assert result["output"].endswith("äöü\näöü\n")
    assert len(result["output"].encode()) <= 100
    assert result["left_out"] == 700_000 - 100


def test_whatever_is_written_no_more_is_kept_than_asked_for():
    for parts in (["x" * 1_000], ["x"] * 1_000, ["", "a", "", "b" * 9, "c" * 11, "d"]):
        output = LastOutput(10)
        for part in parts:
            output.write(part)
        assert output.text == "".join(parts)[-10:]
        assert output.left_out + 10 == len("".join(parts))


@pytest.mark.parametrize("command", ["shell", "migrate", "", "Tally", "../tally"])
def test_a_command_that_is_not_allowed_is_not_run(allowed, command):
    with pytest.raises(Discard, match="not allowed"):
        run(command=command)


def test_by_default_none_is_allowed(settings):
    settings.JOBQUEUE = {}
    with pytest.raises(Discard, match="not allowed"):
        run()


def test_arguments_it_does_not_take_are_no_reason_for_another_attempt(allowed, settings):
    with pytest.raises(Discard, match=r"(?s)does not accept.*--nonsense"):
        run("--nonsense")
    with pytest.raises(Discard, match="--times"):
        run("--times", "many")
    with pytest.raises(Discard, match="leave out --async"):
        run("--async")
    settings.JOBQUEUE = {"COMMANDS": ["tally", "gone"]}
    with pytest.raises(Discard, match="no command 'gone'"):
        run(command="gone")


def test_a_failure_is_told_with_its_code_and_the_output(allowed):
    with pytest.raises(CommandError, match=r"(?s)'tally' failed with exit code 4: out of ink\n.*its output:\na$"):
        run("a", "--fail", "out of ink")
    with pytest.raises(CommandFailed, match=r"(?s)failed with exit code 7\.\n.*\na$"):
        run("a", "--exit", "7")


def test_the_payloads_are_not_to_be_edited():
    assert not run_command.job_type.editable


# --async


@pytest.fixture
def type_it(configure, monkeypatch, capsys):
    """A function that types the command, and says what was written and what was enqueued."""
    configure(**ALLOWED)
    monkeypatch.delenv("JOBQUEUE_ASYNC", raising=False)

    def typed(*words, alias):
        Command().run_from_argv(["manage.py", "tally", *words])
        jobs = Job.objects.using(alias).order_by("id")
        return capsys.readouterr().out, [(job.type, job.payload) for job in jobs]

    return typed


def enqueued(*arguments):
    return [("run_command", {"command": "tally", "arguments": list(arguments)})]


def test_a_typed_command_is_enqueued_where_it_says_so(type_it, alias):
    out, found = type_it("--async", "--times", "2", "--", "a", "--async", alias=alias)
    assert re.fullmatch(r"Enqueued as job [0-9A-Z]{26}\.\n", out)
    assert found == enqueued("--times", "2", "--", "a", "--async")


def test_without_a_word_it_runs_at_once_where_somebody_is_at_a_terminal(type_it, alias, monkeypatch):
    ours, theirs = pty.openpty()
    with os.fdopen(ours, "rb", buffering=0), os.fdopen(theirs) as terminal:
        monkeypatch.setattr(sys, "stdin", terminal)
        assert type_it("a", alias=alias) == ("a\n", [])


def test_the_environment_enqueues_in_silence(type_it, alias, monkeypatch):
    monkeypatch.setenv("JOBQUEUE_ASYNC", "1")
    assert type_it("a", alias=alias) == ("", enqueued("a"))
    assert type_it("b", "--no-async", alias=alias) == ("b\n", enqueued("a"))


def test_where_nobody_is_at_a_terminal_it_is_enqueued_in_silence(type_it, alias, configure, monkeypatch):
    assert type_it("a", alias=alias) == ("", enqueued("a"))
    monkeypatch.setenv("JOBQUEUE_ASYNC", "0")
    assert type_it("b", alias=alias) == ("b\n", enqueued("a"))
    monkeypatch.delenv("JOBQUEUE_ASYNC")
    configure(**ALLOWED, COMMANDS_UNATTENDED=False)
    assert type_it("c", alias=alias) == ("c\n", enqueued("a"))
    configure()  # it is not listed
    assert type_it("d", alias=alias) == ("d\n", enqueued("a"))


def test_what_cannot_be_enqueued_is_told_at_once(type_it, alias, configure, capsys, monkeypatch):
    attempts = [(("--times", "many", "--async"), {}, 2), (("--asy",), {}, 1)]
    for words, _, code in attempts:
        with pytest.raises(SystemExit) as end:
            type_it(*words, alias=alias)
        assert end.value.code == code
    configure()
    with pytest.raises(SystemExit):
        type_it("a", "--async", alias=alias)
    assert "JOBQUEUE['COMMANDS'] does not list it" in capsys.readouterr().err
    monkeypatch.setenv("JOBQUEUE_ASYNC", "maybe")
    with pytest.raises(SystemExit):
        type_it("a", alias=alias)
    assert not Job.objects.using(alias).exists()


def test_called_by_code_it_runs_at_once_whatever_the_environment_says(allowed, monkeypatch):
    monkeypatch.setenv("JOBQUEUE_ASYNC", "1")
    assert run("a")["output"] == "a\n"
    with pytest.raises(CommandError, match="In code"):
        call_command("tally", "--async")


def test_a_command_typed_in_one_process_is_replayed_once_by_another(configure, alias, start_worker, jobs, ledger):
    apps, jobqueue = ["jobqueue.contrib.commands", "tests.contrib.desk"], ALLOWED
    given = {"database": database_of(alias), "jobqueue": jobqueue, "apps": apps, "constants": {}}
    own = {"DJANGO_SETTINGS_MODULE": "tests.worker.settings", "JOBQUEUE_TEST_SETTINGS": json.dumps(given)}
    told = {"JOBQUEUE_ASYNC": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "django", "tally", "a", "--async"],
        cwd=ROOT, env=os.environ | own | told, capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    job_id = re.fullmatch(r"Enqueued as job (\w+)\.\n", done.stdout)[1]
    start_worker(apps=tuple(apps), jobqueue=jobqueue, environment=told)
    (row,) = jobs.until(JobStatus.COMPLETED, job_id)
    assert row.result == {"output": "a\n", "left_out": 0}
    assert Job.objects.using(alias).count() == 1
