"""Tests of the benchmark command: it runs and prints figures, which aren't judged here."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from benchmarks.peers.catalogue import PEERS, contestants
from benchmarks.peers.chart import chart
from benchmarks.peers.standings import Standing
from benchmarks.peers.turns import Findings

ROOT = Path(__file__).resolve().parents[2]
EVERYWHERE = frozenset({"sqlite", "postgres", "redis"})


def run(*options):
    return subprocess.run(
        [sys.executable, "-m", "benchmarks", *options], cwd=ROOT, capture_output=True, text=True, timeout=300
    )


def test_help_names_each_measure_and_each_peer():
    said = run("--help")
    assert (said.returncode, said.stderr) == (0, "")
    for name in ("enqueue", "claim", "drain", "pickup", "soak", "instructions", "atomic"):
        assert f"\n  {name} " in said.stdout


@pytest.mark.sqlite
def test_a_quick_run_measures_the_queue_beside_the_bare_sql(tmp_path):
    written, tables = tmp_path / "found.json", tmp_path / "tables.md"
    said = run(
        "--database", "sqlite", "--quick", "--only", "cycle", "--only", "drain", "--json", written, "--markdown", tables
    )
    assert said.returncode == 0, said.stderr
    found = json.loads(written.read_text())
    assert found["calibration"]["ulid_us"] > 0
    assert {one["database"] for one in found["figures"]} == {"sqlite"}
    for one in found["figures"]:
        assert all(number > 0 for number in one["ours"]["numbers"].values())
        assert one["measure"] in tables.read_text()
    assert any(one["raw"] and one["raw"]["numbers"]["median"] > 0 for one in found["figures"])


@pytest.mark.parametrize(
    "database",
    [pytest.param("sqlite", marks=pytest.mark.sqlite), pytest.param("postgres", marks=pytest.mark.postgres)],
)
def test_a_quick_run_looks_at_each_page_of_the_admin_beside_the_default(tmp_path, database):
    written = tmp_path / "found.json"
    said = run("--database", database, "--quick", "--only", "admin", "--json", written)
    assert said.returncode == 0, said.stderr
    figures = {one["measure"]: one for one in json.loads(written.read_text())["figures"]}
    assert not [name for name, one in figures.items() if "not run" in one["ours"]["text"]]
    for name in (
        "list: everything",
        "search for a payload",
        "a completed job",
        "dead letters by error",
        "dashboard, week",
        "dashboard, week, one queue",
    ):
        (found,) = [one for measure, one in figures.items() if measure.endswith(f"{name}, analysed")]
        assert found["ours"]["numbers"]["p95"] > 0
        assert found["reached"] is not None
    assert figures["list: everything, analysed"]["raw"]["numbers"]["once"] > 0


@pytest.mark.sqlite
def test_a_quick_run_posts_events_kills_worker_and_server_and_misses_none(tmp_path):
    written = tmp_path / "found.json"
    said = run("--database", "sqlite", "--quick", "--only", "capture", "--json", written)
    assert said.returncode == 0, said.stderr
    latency, steady, shaken = json.loads(written.read_text())["figures"]
    assert 0 < latency["ours"]["numbers"]["p50"] <= latency["ours"]["numbers"]["p99"]
    for kept in (steady, shaken):
        assert kept["ours"]["numbers"]["accepted"] >= 225
        assert kept["ours"]["numbers"]["lost"] == 0
        assert kept["reached"]


def test_a_run_leaves_out_what_takes_long_unless_it_is_named():
    said = run("--help").stdout
    assert "\n  admin " in said
    assert "\n  capture " in said
    assert "Only so\nruns what takes long: admin, capture, death, full." in said


def test_a_measure_that_does_not_exist_is_refused_with_the_list_of_those_that_do():
    said = run("--only", "nonsense")
    assert said.returncode == 2
    assert "nonsense" in said.stderr
    assert "enqueue" in said.stderr


def test_all_peers_of_the_catalogue_take_part_in_a_setting_of_their_own():
    found = list(contestants(frozenset(PEERS), EVERYWHERE))
    assert {one.peer.name for one in found} == {"raw", "ours", *PEERS}
    assert all(one.settings for one in found)


def test_the_chart_is_a_picture_that_says_in_words_what_it_shows():
    standings = []
    for number, contestant in enumerate(contestants(frozenset(PEERS), EVERYWHERE)):
        standing = Standing(contestant)
        drain = 1000.0 * (number + 1)
        standing.findings.append(Findings(jobs=100, enqueue=1.0, bulk=None, drain=drain, memory_drained=1.0))
        standings.append(standing)
    picture = ElementTree.fromstring(chart(standings))  # noqa: S314 - our own
    names = {one.tag.rpartition("}")[2] for one in picture.iter()}
    assert {"svg", "title", "desc", "style"} <= names
    said = " ".join(picture.itertext())
    assert all(standing.contestant.peer.title in said for standing in standings)
