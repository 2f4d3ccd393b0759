"""Tests of ARCHITECTURE.md: each link leads to a file or heading, each name to a definition in its file."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "ARCHITECTURE.md").read_text()
LINKS = sorted(set(re.findall(r"\]\(([^)#]+)(?:#[\w-]+)?\)", TEXT)))
STEPS = [
    ([ROOT / one for one in re.findall(r"\]\(([^)]+)\)", files)], re.findall(r"`([\w.]+)`", names))
    for files, names in re.findall(r"^\| [^|]+ \| (\[[^|]+) \| (`[^|]+) \|$", TEXT, flags=re.MULTILINE)
]


def defined(file):
    """List the functions and classes of a file, and the methods as ``Class.method``."""
    for node in ast.parse(file.read_text()).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield node.name
        if isinstance(node, ast.ClassDef):
            yield from (f"{node.name}.{one.name}" for one in node.body if isinstance(one, ast.FunctionDef))


def test_there_is_a_path_with_few_rooms_to_cross():
    assert 10 < len({file for files, _names in STEPS for file in files}) <= 20


@pytest.mark.parametrize("link", LINKS)
def test_each_link_leads_somewhere(link):
    assert (ROOT / link).is_file()


@pytest.mark.parametrize(("files", "names"), STEPS, ids=[names[0] for _files, names in STEPS])
def test_each_step_is_where_the_table_says(files, names):
    known = {name for file in files for name in defined(file)}
    assert set(names) <= known


@pytest.mark.parametrize("room", sorted({part.split("/")[1] for part in LINKS if part.startswith("jobqueue/")}))
def test_each_room_is_there(room):
    assert (ROOT / "jobqueue" / room).exists()


def test_every_folder_of_the_package_is_a_room_or_holds_no_rules():
    without_rules = {"locale", "management", "migrations", "static", "templates", "templatetags"}
    folders = {path.name for path in (ROOT / "jobqueue").iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert {name for name in folders - without_rules if f"[`jobqueue/{name}`]" not in TEXT} == set()
