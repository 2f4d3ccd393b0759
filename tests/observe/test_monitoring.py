"""Tests of the dashboard for Grafana and the alert rules for Prometheus that come with the package."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from importlib.resources import files
from itertools import combinations
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from jobqueue.backends.memory import MemoryBackend
from jobqueue.observe.prometheus.exposition import exposition
from jobqueue.records.relay import Waiting

FOLDER = files("jobqueue") / "observe" / "monitoring"
RULES = FOLDER / "rules.yml"
DASHBOARD = json.loads((FOLDER / "dashboard.json").read_text(encoding="utf-8"))
OF_RULES = Path(__file__).with_name("rules_test.yml")

with_promtool = pytest.mark.skipif(not shutil.which("promtool"), reason="promtool, of Prometheus, is not installed")


def promtool(*words, given=None):
    return subprocess.run(["promtool", *words], input=given, capture_output=True, text=True, timeout=60, check=False)


def expressions():
    """Yield the queries of the dashboard with values for Grafana's variables."""
    for panel in DASHBOARD["panels"]:
        for target in panel.get("targets", ()):
            yield re.sub(r"\$(job|queue|type)\b", ".*", target["expr"].replace("$__rate_interval", "5m"))


def families():
    """Return the names of all series and of their families."""
    text, _type = exposition(MemoryBackend(), lambda _backend: Waiting(0, None, None, None, ""), "")
    found = list(text_string_to_metric_families(text.decode()))
    return {one.name for one in found} | {sample.name for one in found for sample in one.samples}


@with_promtool
def test_each_alert_fires_and_resolves():
    checked = promtool("check", "rules", str(RULES))
    assert checked.returncode == 0, checked.stdout + checked.stderr
    tested = promtool("test", "rules", str(OF_RULES))
    assert tested.returncode == 0, tested.stdout + tested.stderr
    named = re.findall(r"alert: (\w+)", RULES.read_text(encoding="utf-8"))
    assert [name for name in named if name not in OF_RULES.read_text(encoding="utf-8")] == []


@with_promtool
def test_each_query_of_the_dashboard_is_valid(tmp_path):
    made = [{"record": f"query:{number}", "expr": one} for number, one in enumerate(expressions())]
    path = tmp_path / "queries.json"  # YAML contains JSON
    path.write_text(json.dumps({"groups": [{"name": "dashboard", "rules": made}]}))
    checked = promtool("check", "rules", str(path))
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_dashboard_and_rules_ask_only_for_metrics_that_exist():
    known = families()
    asked = set(re.findall(r"jobqueue_\w+", " ".join(expressions()) + RULES.read_text(encoding="utf-8")))
    assert {"jobqueue_attempts_total", "jobqueue_jobs_waiting"} <= asked
    assert asked - known == set()


def test_the_panels_of_the_dashboard_have_places_of_their_own():
    panels = DASHBOARD["panels"]
    assert len({one["id"] for one in panels}) == len(panels)
    for one, other in combinations([panel["gridPos"] for panel in panels], 2):
        beside = one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
        below = one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"]
        assert beside or below
    assert all(one["x"] + one["w"] <= 24 for one in (panel["gridPos"] for panel in panels))
