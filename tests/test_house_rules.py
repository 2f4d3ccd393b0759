"""Tests of the house rules that a machine can check: docstrings, sizes, imports, and data that is never code."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[1] / "jobqueue"
LONGEST_FILE = 320
LONGEST_FUNCTION = 45

MODULES = {
    str(path.relative_to(PACKAGE)): path.read_text(encoding="utf-8")
    for path in sorted(PACKAGE.rglob("*.py"))
    if "migrations" not in path.parts
}
TREES = {name: ast.parse(text) for name, text in MODULES.items()}

each_module = pytest.mark.parametrize("name", MODULES)

#: What makes code of data.
FORBIDDEN_MODULES = {"pickle", "marshal", "shelve", "dill", "cloudpickle", "jsonpickle", "_pickle"}
FORBIDDEN_NAMES = {"eval", "exec", "compile", "__import__"}
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def _functions(tree):
    return [node for node in ast.walk(tree) if isinstance(node, DEFINITIONS)]


def _imported(tree):
    """Every module a file imports, with the packages it lies in."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_there_is_something_to_check():
    assert {"control.py", "states.py", "backends/sqlite/backend.py"} <= set(MODULES)


@each_module
def test_a_module_says_on_its_door_what_lives_there(name):
    assert not MODULES[name].strip() or ast.get_docstring(TREES[name])


@each_module
def test_a_file_is_short_enough_to_see(name):
    assert len(MODULES[name].splitlines()) <= LONGEST_FILE


@each_module
def test_a_function_is_short_enough_to_see(name):
    lengths = {function.name: function.end_lineno - function.lineno + 1 for function in _functions(TREES[name])}
    assert {one: length for one, length in lengths.items() if length > LONGEST_FUNCTION} == {}


@each_module
def test_nothing_is_imported_inside_a_function(name):
    inside = [
        f"{function.name}, line {node.lineno}"
        for function in _functions(TREES[name])
        for node in ast.walk(function)
        if isinstance(node, (ast.Import, ast.ImportFrom))
    ]
    assert inside == []


@each_module
def test_data_is_never_code(name):
    modules = {module for module in _imported(TREES[name]) if module.split(".")[0] in FORBIDDEN_MODULES}
    names = {node.id for node in ast.walk(TREES[name]) if isinstance(node, ast.Name) and node.id in FORBIDDEN_NAMES} | {
        node.attr
        for node in ast.walk(TREES[name])
        if isinstance(node, ast.Attribute)
        and node.attr in {"eval", "exec"}
        and isinstance(node.value, ast.Name)
        and node.value.id == "builtins"
    }
    assert modules | names == set()


@each_module
def test_an_import_path_comes_from_the_settings_alone(name):
    # The last one loads a module of its own, by a constant name.
    users = {
        "backends/__init__.py",
        "contrib/email/courier.py",
        "observe/access.py",
        "backends/sqlite/__init__.py",
    }
    loads = {"import_module", "import_string"} & {module.rpartition(".")[2] for module in _imported(TREES[name])}
    assert not loads or name in users
