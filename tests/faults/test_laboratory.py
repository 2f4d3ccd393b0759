"""Tests of the laboratory: it finds broken promises, and reports these and what it could not try."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.faults import trials
from benchmarks.faults.catalogue import BOTH, Fault, catalogue, fault
from benchmarks.faults.checker import Account, Overlap
from benchmarks.faults.laboratory import Trial
from benchmarks.faults.report import Report, quantiles, total, zero_of
from benchmarks.faults.verdict import Outcome, Verdict

ROOT = Path(__file__).resolve().parents[2]


def run(*options):
    return subprocess.run(
        [sys.executable, "-m", "benchmarks.faults", *options], cwd=ROOT, capture_output=True, text=True, timeout=110
    )


def verdict(**values):
    given = {"fault": "T99", "title": "nothing at all", "database": "sqlite", "outcome": Outcome.HELD}
    return Verdict(**given | values)


@pytest.mark.parametrize("database", [pytest.param(one, marks=getattr(pytest.mark, one)) for one in BOTH])
def test_without_the_fence_of_a_late_worker_the_account_shows_stale_writes(database):
    trial = Trial(fault="T05", database=database, seconds=0.5, seed="ci", quick=True)
    found = trials.try_out(replace(trial, late_apps=("tests.worker.unfenced",)))
    assert found.outcome is Outcome.BROKEN
    assert len(found.account.stale) >= 3
    assert any("no longer held" in words for words in found.why)
    for promise in ("claimed twice", "late report of progress"):
        assert any(promise in words for words in found.why)


def test_what_the_machine_cannot_offer_is_not_run_and_never_passed(monkeypatch):
    lacking = Fault(id="T98", title="nothing", inject=lambda lab: None, needs=(lambda: "there is no such thing",))
    monkeypatch.setitem(catalogue(), "T98", lacking)
    found = trials.try_out(Trial(fault="T98", database="sqlite", seconds=1, seed="ci"))
    assert (found.outcome, found.why, found.account) == (Outcome.NOT_RUN, ("there is no such thing",), None)
    said = Report([found], {}).markdown()
    assert "Not run:" in said
    assert "- T98 on sqlite: there is no such thing" in said
    assert "| T98" not in said


def test_a_number_is_given_once():
    with pytest.raises(ValueError, match="two faults T01"):
        fault("T01", "another")(lambda lab: None)


def test_every_fault_says_what_it_injects_and_what_shall_hold():
    for one in catalogue().values():
        assert one.title
        assert one.about.endswith(".")
        assert ": " in one.about
        assert set(one.databases) <= set(BOTH)


def test_every_fault_is_in_the_documentation():
    page = (ROOT / "docs/explanation/faults.md").read_text(encoding="utf-8")
    for one in catalogue().values():
        (line,) = [line for line in page.splitlines() if line.startswith(f"| {one.id} |")]
        where = {"sqlite": "SQLite", "postgres": "Postgres"}
        assert line.endswith(f"| {'both' if one.databases == BOTH else where[one.databases[0]]} |")


def test_nothing_of_many_is_told_with_its_bound():
    assert zero_of(0, 1_000) == "0 of 1,000 (≤ 0.003)"
    assert zero_of(2, 1_000) == "2 of 1,000"
    assert zero_of(0, 0) == "0 of 0"


def test_median_and_tail_are_told_with_how_many_there_were():
    assert quantiles([]) == "-"
    assert quantiles([3.0, 1.0, 2.0]) == "2.00 / 3.00 s of 3"


def test_accounts_add_up():
    one = Account(accepted=3, lost=("a",), recoveries=(1.0,))
    summed = total([one, Account(accepted=4, stale=("b",), recoveries=(2.0,))])
    assert (summed.accepted, summed.lost, summed.stale, summed.recoveries) == (7, ("a",), ("b",), (1.0, 2.0))


def test_a_verdict_is_the_same_after_a_trip_through_json():
    account = Account(accepted=3, lost=("a",), overlaps=(Overlap("a", (1, 2), 0.5, stalled=False),), recoveries=(1.0,))
    told = verdict(outcome=Outcome.BROKEN, why=("a job is lost",), account=account, findings={"seconds": 1.5})
    assert Verdict.of(json.loads(json.dumps(told.as_json()))) == told


def test_the_list_names_every_fault():
    said = run("--list")
    assert (said.returncode, said.stderr) == (0, "")
    for one in catalogue().values():
        assert f"{one.id} " in said.stdout
        assert one.about in said.stdout


def test_a_fault_that_does_not_exist_is_refused():
    said = run("--only", "T00")
    assert said.returncode == 2
    assert "T00" in said.stderr


@pytest.mark.sqlite
def test_the_command_tells_what_it_found_to_people_and_to_programs(tmp_path):
    written, tables = tmp_path / "found.json", tmp_path / "found.md"
    options = ("--only", "T26", "--database", "sqlite", "--minutes", "0.02", "--seed", "7", "--quick")
    said = run(*options, "--json", written, "--markdown", tables)
    assert said.returncode == 0, said.stdout + said.stderr
    found = json.loads(written.read_text())
    (one,) = found["verdicts"]
    assert (one["fault"], one["database"], one["outcome"], one["seed"]) == ("T26", "sqlite", "held", "7")
    assert one["account"]["accepted"] > 0
    assert "| T26 many claimers" in tables.read_text()
    assert found["facts"]["seed"] == "7"


@pytest.mark.sqlite
def test_where_the_injection_fails_the_jobs_are_accounted_for_all_the_same(tmp_path):
    """A worker that stands still, and a function that fails before it wakes it."""
    script = """
from pathlib import Path
from sys import argv
from benchmarks.faults.catalogue import Fault
from benchmarks.faults.laboratory import Laboratory, Trial
from benchmarks.faults.place import ground, prepare

def fail(lab):
    (worker,) = lab.crew.start(1, lease=lab.lease)
    lab.enqueue("long", 3)
    lab.crew.freeze(worker)  # after that nobody may ask the database: it may hold the lock
    raise RuntimeError("in the midst of it")

with ground("sqlite", in_own_cluster=False) as found:
    prepare(found.place)
    lab = Laboratory(Trial(fault="T97", database="sqlite", seconds=1, seed="ci", quick=True), found, Path(argv[1]))
    verdict = lab.try_out(Fault(id="T97", title="nothing", inject=fail))
    print(verdict.outcome, verdict.account.accepted, len(verdict.account.lost), *verdict.why)
"""
    said = subprocess.run(
        [sys.executable, "-c", script, tmp_path], cwd=ROOT, capture_output=True, text=True, timeout=110
    )
    assert said.stdout.startswith("BROKEN 3 0 the laboratory itself failed"), said.stdout + said.stderr
    assert "in the midst of it" in said.stdout
