"""Tests of commands in real processes: exit codes, questions on a terminal, and pipes."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys

import pytest

import jobqueue
from jobqueue.observe.health.workers import PATIENCE
from jobqueue.testing.contract.harness import draft, put, put_all
from tests.cli.conftest import ROOT, arguments, settings_of
from tests.conftest import ON_SQLITE

VERBS = {
    "status": [],
    "list": [],
    "show": ["some-id"],
    "why": ["some-id"],
    "retry": ["some-id"],
    "retry-all": ["--yes"],
    "cancel": ["--all", "--yes"],
    "purge": ["--all", "--yes"],
    "pause": ["--queue", "mail"],
    "resume": ["--queue", "mail"],
    "workers": [],
    "enqueue": ["send_welcome", '{"user_id": 7}'],
}


def at_a_terminal(alias, *words, answer="", env=None):
    """Run a command at a terminal of its own; return its exit code and what was seen."""
    here, there = pty.openpty()
    program = subprocess.Popen(
        **arguments(alias, *words, env={"TERM": "xterm", **(env or {})}), stdin=there, stdout=there, stderr=there
    )
    os.close(there)
    os.write(here, answer.encode())
    seen = b""
    while True:
        try:
            part = os.read(here, 4096)
        except OSError:  # how Linux tells that the other end is closed
            break
        if not part:
            break
        seen += part
    os.close(here)
    return program.wait(timeout=60), seen.decode().replace("\r\n", "\n")


def test_data_goes_to_stdout_and_messages_to_stderr(process):
    said = process("enqueue", "send_welcome", "-", given='{"user_id": 7}')
    assert (said.code, said.err) == (0, "Enqueued send_welcome.\n")
    assert jobqueue.get(said.out.strip()).payload["user_id"] == 7
    assert process("enqueue", "send_welcome", '{"user_id": 7}', "-v", "0").err == ""


@ON_SQLITE
def test_exit_codes_are_what_the_help_says(process, queue):
    assert process("status").code == 0
    put(queue, "send_welcome", scheduled_at=queue.now() - PATIENCE)
    assert process("status", "--json").code == 1
    assert process("status", "--nosuch").code == 2
    assert process("nosuch").code == 2
    assert process("show", "nosuch").code == 3
    assert process("retry", "nosuch").code == 1


@ON_SQLITE
def test_every_verb_explains_itself_with_examples_and_exit_codes(process):
    overview = process("--help").out
    assert all(verb in overview for verb in VERBS)
    said = process("purge", "--help")
    assert said.code == 0
    assert "manage.py jobqueue purge --status completed --older-than 30d --yes" in said.out
    assert "exit codes:" in said.out


#: Runs subcommands one after another; each ends with its exit code.
ONE_BY_ONE = """
import json, sys
from django.conf import settings
from django.core.management import execute_from_command_line

settings.configure(**json.loads(sys.argv[1]))
for words in json.loads(sys.argv[2]):
    try:
        execute_from_command_line(["manage.py", "jobqueue", *words])
    except SystemExit as end:
        print(words[0], end.code, flush=True)
"""


def test_a_database_without_migrations_is_one_sentence(queue, alias, tmp_path):
    settings = settings_of(alias, NAME=str(tmp_path / "empty.sqlite3") if alias == "default" else "postgres")
    lines = [json.dumps(settings), json.dumps([[verb, *words] for verb, words in VERBS.items()])]
    said = subprocess.run(
        [sys.executable, "-c", ONE_BY_ONE, *lines], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True
    )
    assert said.stdout.splitlines() == [f"{verb} 3" for verb in VERBS]
    sentence = 'CommandError: The database "default" has no job queue of this release yet: run "manage.py migrate".'
    assert said.stderr.splitlines() == [sentence] * len(VERBS)


@pytest.mark.postgres
@pytest.mark.parametrize("alias", ["postgres"])
def test_a_database_that_does_not_answer_is_one_sentence(process):
    said = process("status", HOST="127.0.0.1", PORT="1")
    assert said.code == 3
    assert said.err.startswith("CommandError: The database did not answer: ")
    assert len(said.err.splitlines()) == 1


@ON_SQLITE
def test_a_terminal_is_asked_before_anything_is_destroyed(queue, alias, dead_letter):
    dead = dead_letter()
    for answer in ("\n", "n\n", "yess\n", "\x04"):
        code, seen = at_a_terminal(alias, "purge", "--all", answer=answer)
        assert code == 1
        assert "Purge 1 job with history? [y/N]" in seen
        assert "Nothing was changed." in seen
        assert jobqueue.get(dead).status == "dead_letter"
    code, seen = at_a_terminal(alias, "purge", dead, answer="y\n")
    assert code == 0
    assert "1 of 1 jobs" in seen
    assert "1 job purged." in seen
    assert queue.jobs.get(dead) is None


@ON_SQLITE
def test_a_terminal_gets_colours_and_a_table_that_fits(queue, alias, dead_letter):
    dead = dead_letter(message="a long story " * 30)
    _code, seen = at_a_terminal(alias, "list")
    assert "\x1b[" in seen
    assert "…" in seen
    assert dead in seen
    assert max(len(re.sub(r"\x1b\[[0-9;]*m", "", line)) for line in seen.splitlines()) <= 100
    for words, env in (
        (["list", "--no-color"], {}),
        (["list"], {"NO_COLOR": "1"}),
        (["list"], {"DJANGO_COLORS": "nocolor"}),
    ):
        assert "\x1b[" not in at_a_terminal(alias, *words, env=env)[1]


@ON_SQLITE
def test_a_pipe_gets_neither_colours_nor_padding(process, dead_letter):
    dead = dead_letter(message="a long story " * 30)
    lines = process("list").out.splitlines()
    assert lines[0].split("\t")[:2] == ["id", "type"]
    assert lines[1].split("\t")[0] == dead
    assert lines[1].split("\t")[-1] == ("a long story " * 30).strip()
    assert "\x1b[" in process("list", "--force-color").out + process("status", "--force-color").out


def test_json_is_one_document_whatever_happens_to_the_jobs(run, queue, dead_letter):
    dead = dead_letter()
    put_all(queue, draft("send_welcome", payload='{"user_id": 7, "name": "Zoë"}'))
    for verb, words in VERBS.items():
        given = [dead if word == "some-id" else word for word in words]
        assert isinstance(run(verb, *given, "--json").json, dict)


@ON_SQLITE
def test_a_reader_that_has_seen_enough_is_no_error(queue, alias):
    put_all(queue, *(draft("send_welcome") for _ in range(3_000)))
    program = subprocess.Popen(
        **arguments(alias, "list", "--limit", "3000", "--json"), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    program.stdout.read(10)
    program.stdout.close()
    assert program.stderr.read() == b""
    program.stderr.close()
    assert program.wait(timeout=60) == 0
