"""Tests of a worker's start: its output, its jobs, and errors that prevent it."""

from __future__ import annotations

import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
from argparse import ArgumentParser
from contextlib import closing

import pytest
from django.db import connections

from jobqueue.cli import worker_options
from jobqueue.cli.worker_options import FLAGS, LISTS, OPTIONS
from jobqueue.clock import from_text
from jobqueue.testing.contract.harness import put
from tests.app.worker_jobs_b import hopeless, judge, nap, nap_many, third_time_lucky
from tests.conftest import ON_SQLITE
from tests.worker.harness import ROOT, children, database_of, until

SECRET = "hush-hush-7"
MOMENT = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}"


def failed(worker):
    """Wait for a worker that cannot start; return what it said."""
    assert worker.wait() != 0
    assert "Traceback" not in worker.output
    return worker.output


# What cannot be


def test_a_database_without_migrations_is_one_sentence(start_worker, alias, tmp_path):
    name = str(tmp_path / "empty.sqlite3") if alias == "default" else "postgres"
    said = failed(start_worker("--skip-checks", up=0, database={"NAME": name}))
    assert (
        said == 'CommandError: The database "default" has no job queue of this release yet: run "manage.py migrate".\n'
    )


def test_a_database_that_does_not_answer_is_one_sentence(start_worker, alias, tmp_path):
    where = (
        {"NAME": str(tmp_path / "no" / "such.sqlite3")} if alias == "default" else {"HOST": "127.0.0.1", "PORT": "1"}
    )
    said = failed(start_worker("--skip-checks", up=0, database=where))
    assert said.startswith("CommandError: ")
    assert len(said.splitlines()) == 1


def test_a_type_that_nobody_has_ends_it_with_the_nearest_name(start_worker, alias):
    for option in ("--type", "--exclude-type"):
        said = failed(start_worker(option, "hopless", up=0))
        assert "No handler is registered for the job type 'hopless'. Did you mean 'hopeless'" in said
        assert len(said.splitlines()) == 1


def test_a_queue_that_nobody_has_is_named_with_those_there_are(start_worker, alias):
    nap.using(queue="mail").enqueue()
    worker = start_worker("--queue", "nosuch", "--drain", up=0)
    assert worker.wait() == 0
    assert "'nosuch'" in worker.output
    assert re.search(r"Choose one of: .*default.*images.*mail", worker.output)


@pytest.mark.parametrize("alias", [pytest.param("default", marks=pytest.mark.sqlite)], indirect=True)
@pytest.mark.parametrize(
    ("words", "environment", "sentence"),
    [
        (["--concurrency", "0"], {}, "--concurrency must be from 1 to 10000, got 0"),
        (["--lease", "1"], {}, "--lease must be from 2 to 3600, got 1.0"),
        (["--max-rss", "lots"], {}, "argument --max-rss: invalid int value: 'lots'"),
        (["--shutdown-grace", "nan"], {}, "--shutdown-grace must be from 0 to 86400, got nan"),
        ([], {"JOBQUEUE_WORKER_LEASE": "soon"}, "JOBQUEUE_WORKER_LEASE is 'soon', which is not a valid float."),
        ([], {"JOBQUEUE_WORKER_DRAIN": "maybe"}, "JOBQUEUE_WORKER_DRAIN is 'maybe'; write 1 for yes or 0 for no."),
        ([], {"JOBQUEUE_WORKER_SKIP_CHECKS": "nay"}, "JOBQUEUE_WORKER_SKIP_CHECKS is 'nay'; write 1 for yes or 0"),
        ([], {"JOBQUEUE_WORKER_QUEUES": "mail"}, "Did you mean 'JOBQUEUE_WORKER_QUEUE'?"),
        ([], {"JOBQUEUE_WORKER_CONCURENCY": "2"}, "Did you mean 'JOBQUEUE_WORKER_CONCURRENCY'?"),
        (["--queue", ""], {}, "--queue is empty: give a name or leave it out."),
        (["--type", " "], {}, "--type is empty: give a name or leave it out."),
        ([], {"JOBQUEUE_WORKER_QUEUE": " , "}, "JOBQUEUE_WORKER_QUEUE is empty: give a name or leave it out."),
        ([], {"JOBQUEUE_WORKER_PROCESSES": "-1"}, "--processes must be from 0 to 256, got -1"),
    ],
)
def test_a_value_that_will_not_do_is_refused_in_one_sentence(start_worker, words, environment, sentence):
    said = failed(start_worker(*words, up=0, environment=environment))
    assert sentence in said.splitlines()[-1]


@pytest.mark.parametrize("alias", [pytest.param("default", marks=pytest.mark.sqlite)], indirect=True)
@pytest.mark.parametrize(
    ("jobqueue", "sentence"),
    [
        ({"BACKEND": "x.y.Z"}, "CommandError: JOBQUEUE['BACKEND'] is 'x.y.Z', which cannot be imported: "),
        ({"DATABSE": "default"}, "CommandError: JOBQUEUE has the unknown key 'DATABSE'. Did you mean 'DATABASE'?"),
        ({"DATABASE": "defualt"}, "CommandError: JOBQUEUE names the database 'defualt', which is not in DATABASES. "),
        (
            {"RUNTIME_DIR": "run"},
            "CommandError: JOBQUEUE['RUNTIME_DIR'] must be None or the absolute path of an existing folder",
        ),
    ],
)
def test_settings_that_will_not_do_are_one_sentence_where_checks_do_not_run(start_worker, jobqueue, sentence):
    said = failed(start_worker("--skip-checks", "--processes", "0", "--drain", up=0, jobqueue=jobqueue))
    assert said.splitlines()[-1].startswith(sentence)


# What may be told


@pytest.fixture
def read_options(monkeypatch):
    """A function that reads options as the command does, from an environment and a command line."""

    def read(environment, *words):
        for name, text in environment.items():
            monkeypatch.setenv(name, text)
        parser = ArgumentParser()
        worker_options.add(parser)
        return worker_options.read(vars(parser.parse_args(words)))

    return read


NUMBERS = {option.name: ("96", 96) for option in OPTIONS} | {"name": ("north", "north"), "poll-interval": ("0.5", 0.5)}
NUMBERS |= {"metrics-host": ("0.0.0.0", "0.0.0.0"), "heartbeat": ("beats", "beats")}  # noqa: S104


@pytest.mark.parametrize("name", sorted(NUMBERS))
def test_every_option_may_come_from_the_environment(read_options, name):
    text, value = NUMBERS[name]
    options = read_options({f"JOBQUEUE_WORKER_{name.replace('-', '_').upper()}": text})
    assert getattr(options, name.replace("-", "_")) == value


def test_lists_and_flags_may_come_from_the_environment_too(read_options):
    options = read_options({"JOBQUEUE_WORKER_QUEUE": "mail, sms", "JOBQUEUE_WORKER_DRAIN": "1"})
    assert (options.queues, options.drain) == (frozenset({"mail", "sms"}), True)
    options = read_options({"JOBQUEUE_WORKER_TYPE": "nap", "JOBQUEUE_WORKER_EXCLUDE_TYPE": "keep,weigh"})
    assert (options.types, options.excluded_types) == (frozenset({"nap"}), frozenset({"keep", "weigh"}))


@pytest.mark.parametrize("text", ["0", "false", "No", "off", ""])
def test_a_flag_may_be_off_in_the_environment(read_options, text):
    assert read_options({"JOBQUEUE_WORKER_DRAIN": text}).drain is False


def test_what_kubernetes_sets_for_a_service_of_that_name_is_left_alone(read_options):
    told = {
        "JOBQUEUE_WORKER_SERVICE_HOST": "10.0.0.7",
        "JOBQUEUE_WORKER_SERVICE_PORT_HTTP": "80",
        "JOBQUEUE_WORKER_PORT": "tcp://10.0.0.7:80",
        "JOBQUEUE_WORKER_METRICS_PORT": "tcp://10.0.0.8:80",
        "JOBQUEUE_WORKER_PORT_80_TCP_ADDR": "10.0.0.7",
    }
    assert read_options(told) == read_options({})


def test_the_command_line_wins(read_options):
    options = read_options({"JOBQUEUE_WORKER_LEASE": "30", "JOBQUEUE_WORKER_QUEUE": "sms"}, "--lease", "90")
    assert (options.lease, options.queues) == (90.0, frozenset({"sms"}))


def test_the_help_tells_units_defaults_and_exit_codes():
    said = subprocess.run(
        [sys.executable, "-m", "django", "runworker", "--help"],
        cwd=ROOT,
        env=os.environ | {"DJANGO_SETTINGS_MODULE": "tests.settings", "COLUMNS": "110"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    for option in OPTIONS:
        assert f"--{option.name} {option.unit}" in said
        if option.default:
            assert f"Default: {option.default:g}." in said
    assert all(f"--{name}" in said for name, _ in (*LISTS, *FLAGS))
    assert "exit codes:\n  0  " in said
    assert "SIGTERM, SIGINT" in said
    assert "JOBQUEUE_WORKER_MAX_JOBS" in said


# What it says


@pytest.fixture
def eventful(queue):
    """Jobs of every fate: one that succeeds, one after failures, one that dies, one that is cancelled."""
    return [
        nap.enqueue(seconds=0),
        third_time_lucky.enqueue(label=SECRET),
        hopeless.enqueue(label=SECRET),
        judge.enqueue(which="cancel"),
    ]


def test_with_v_0_it_says_nothing_at_all(start_worker, jobs, eventful):
    worker = start_worker("-v", "0", "--drain", up=0)
    assert worker.wait() == 0
    assert jobs.statuses(*eventful) == ["completed", "completed", "dead_letter", "failed"]
    assert worker.output == ""


@pytest.mark.parametrize("unbuffered", ["1", ""])
def test_with_a_log_on_a_full_disk_it_starts_works_and_ends_well(start_worker, jobs, ledger, unbuffered):
    full = ("sh", "-c", 'exec "$@" >/dev/full 2>&1', "sh")
    worker = start_worker(prefix=full, environment={"PYTHONUNBUFFERED": unbuffered})
    jobs.until("completed", nap.enqueue(seconds=0))
    assert worker.stop() == 0
    assert worker.output == ""


def test_with_v_1_it_says_what_it_does_and_one_line_per_event(start_worker, jobs, alias, eventful):
    worker = start_worker(
        "--drain",
        "--concurrency",
        "3",
        "--name",
        "north",
        "--type",
        "nap",
        "--type",
        "hopeless",
        "--type",
        "third_time_lucky",
        "--type",
        "judge",
        "--skip-checks",
        up=0,
    )
    assert worker.wait() == 0
    vendor = "sqlite" if alias == "default" else "postgresql"
    banner, lines = worker.output.splitlines()[:6], worker.output.splitlines()[6:]
    assert re.fullmatch(r"jobqueue \S+, worker north", banner[0])
    assert re.fullmatch(rf"  database  default \({vendor}, .+\)", banner[1])
    assert banner[2:5] == [
        "  queues    all",
        "  types     hopeless, judge, nap, third_time_lucky",
        "  slots     3 in 1 executor",
    ]
    of = {one.id: [line for line in lines if one.id in line] for one in eventful}
    assert [len(of[one.id]) for one in eventful] == [1, 3, 1, 1]
    assert re.fullmatch(rf"{MOMENT} INFO +Job completed: nap \w+, \d+ ms", of[eventful[0].id][0])
    assert re.fullmatch(
        rf"{MOMENT} WARNING Job retried: third_time_lucky \w+, attempt 1 of 3, \d+ ms, again in 200 ms "
        r"\(failed: ValueError: not yet: attempt 1\)",
        of[eventful[1].id][0],
    )
    assert re.search(r"ERROR +Job dead-lettered: hopeless .*no hope", of[eventful[2].id][0])
    assert re.search(r"INFO +Job cancelled: judge .*withdrawn", of[eventful[3].id][0])
    assert all(re.match(MOMENT, line) for line in lines)
    assert SECRET not in worker.output


def test_with_v_2_it_says_what_begins_too(start_worker, alias, eventful):
    worker = start_worker("-v", "2", "--drain", up=0)
    assert worker.wait() == 0
    assert len(re.findall(r"DEBUG +Job started: third_time_lucky", worker.output)) == 3
    assert len(re.findall(r"DEBUG +Job started: ", worker.output)) == 6


@pytest.mark.parametrize(
    "how", [{"jobqueue": {"LOG_FORMAT": "json"}}, {"options": ["--json"]}], ids=["setting", "flag"]
)
def test_as_json_each_line_is_one_object_with_facts_and_no_payload(start_worker, alias, eventful, how):
    given = dict(how)
    worker = start_worker("-v", "2", "--drain", "--skip-checks", *given.pop("options", []), up=0, **given)
    assert worker.wait() == 0
    lines = [json.loads(line) for line in worker.output.splitlines()]
    assert SECRET not in worker.output
    assert all({"time", "level", "logger", "message"} <= line.keys() for line in lines)
    assert all(from_text(line["time"]) for line in lines)
    events = [line for line in lines if "event" in line]
    assert {line["event"] for line in events} == {"started", "completed", "retried", "dead-lettered", "cancelled"}
    [dead] = [line for line in events if line["event"] == "dead-lettered"]
    assert (dead["level"], dead["job_type"], dead["job_id"]) == ("error", "hopeless", eventful[2].id)
    assert (dead["queue"], dead["attempt"], dead["max_retries"]) == ("default", 1, 1)
    assert (dead["error_class"], dead["error"]) == ("ValueError", "no hope")
    assert dead["duration"] >= 0
    assert dead["worker"]
    [again, _] = [line for line in events if line["event"] == "retried"]
    assert again["delay"] == 0.2


# Where executors cannot be forked


def test_a_project_that_starts_threads_gets_its_executors_another_way_and_is_told(start_worker, jobs, ledger):
    receipts = nap_many(5)
    worker = start_worker(apps=("tests.worker.threaded",))
    jobs.until("completed", *receipts)
    assert "Something in this project starts threads on import" in worker.output
    assert "jobqueue.worker.zygote.bare" in command_of(worker.zygote)
    assert {run.pid for run in ledger.runs()} <= set(worker.executors)
    os.kill(worker.executors[0], signal.SIGKILL)
    late = nap_many(3)
    jobs.until("completed", *late)
    assert worker.stop() == 0
    assert "Traceback" not in worker.output
    until(lambda: not list(worker.relatives()), 3, "the end of its processes")


def command_of(pid):
    with open(f"/proc/{pid}/cmdline") as file:  # noqa: PTH123
        return file.read()


# Development


APP = "from jobqueue import job\n\n\n@job\ndef changing() -> str:\n    return {!r}\n"


def test_a_worker_that_reloads_runs_what_the_file_says_now(start_worker, queue, jobs, tmp_path):
    folder = tmp_path / "path" / "changing_app"
    folder.mkdir(parents=True)
    (folder / "__init__.py").touch()
    (folder / "jobs.py").write_text(APP.format("old"))
    environment = {"PYTHONPATH": str(tmp_path / "path"), "PYTHONDONTWRITEBYTECODE": "1"}
    worker = start_worker("--reload", up=0, apps=("changing_app",), environment=environment)
    old = put(queue, "changing", payload="{}")
    jobs.until("completed", old)
    (folder / "jobs.py").write_text(APP.format("new and longer"))
    until(lambda: worker.output.count("slots  ") == 2, what="a second banner")
    new = put(queue, "changing", payload="{}")
    jobs.until("completed", new)
    assert (jobs.get(old).result, jobs.get(new).result) == ("old", "new and longer")
    [inner] = children(worker.pid)
    worker.process.send_signal(signal.SIGTERM)
    worker.wait()
    until(lambda: list(worker.relatives()) == [], 3, f"the end of the worker {inner}")


def test_executors_that_end_as_they_begin_are_not_forked_without_end(start_worker):
    worker = start_worker(up=0, apps=("tests.worker.stillborn",))
    until(lambda: worker.output.count("before it was ready") >= 4)
    pauses = [float(one) for one in re.findall(r"before it was ready; ([\d.]+) s", worker.output)]
    assert pauses[:4] == [0.1, 0.2, 0.4, 0.8]
    assert worker.stop() == 0


@ON_SQLITE
def test_a_worker_starts_while_another_program_holds_the_write_lock(start_worker, jobs, alias):
    with closing(sqlite3.connect(database_of(alias)["NAME"], isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        options = {**connections[alias].settings_dict["OPTIONS"], "timeout": 0.05}
        worker = start_worker(database={"OPTIONS": options})
        worker.until_said("slots")
        other.execute("ROLLBACK")
    assert "fields.E180" not in worker.output
    jobs.until("completed", nap.enqueue())
    assert worker.stop() == 0
