"""Tests of the house rules that a machine can check: docstrings, sizes, imports, and data that is never code."""

from __future__ import annotations

import ast
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1] / "jobqueue"
LONGEST_FILE = 320
LONGEST_FUNCTION = 45

MODULES = {
    str(path.relative_to(PACKAGE)): path.read_text(encoding="utf-8")
    for path in sorted(PACKAGE.rglob("*.py"))
    if "migrations" not in path.parts
}
TREES = {name: ast.parse(text) for name, text in MODULES.items()}
NODES = {name: list(ast.walk(tree)) for name, tree in TREES.items()}

#: What makes code of data.
FORBIDDEN_MODULES = {"pickle", "marshal", "shelve", "dill", "cloudpickle", "jsonpickle", "_pickle"}
FORBIDDEN_NAMES = {"eval", "exec", "compile", "__import__"}
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def _imported(nodes):
    """Every module a file imports, with the packages it lies in."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


FUNCTIONS = {name: [node for node in nodes if isinstance(node, DEFINITIONS)] for name, nodes in NODES.items()}
IMPORTS = {name: set(_imported(nodes)) for name, nodes in NODES.items()}


def _offenders(rule):
    """Return what a rule finds, by the module's name."""
    return {name: found for name in MODULES if (found := rule(name))}


def test_there_is_something_to_check():
    assert {"control.py", "states.py", "backends/sqlite/backend.py"} <= set(MODULES)


def test_a_module_says_on_its_door_what_lives_there():
    assert _offenders(lambda name: MODULES[name].strip() and not ast.get_docstring(TREES[name])) == {}


def test_a_file_is_short_enough_to_see():
    assert {name: length for name, text in MODULES.items() if (length := len(text.splitlines())) > LONGEST_FILE} == {}


def test_a_function_is_short_enough_to_see():
    def too_long(name):
        lengths = {function.name: function.end_lineno - function.lineno + 1 for function in FUNCTIONS[name]}
        return {one: length for one, length in lengths.items() if length > LONGEST_FUNCTION}

    assert _offenders(too_long) == {}


def test_nothing_is_imported_inside_a_function():
    def inside(name):
        return [
            f"{function.name}, line {node.lineno}"
            for function in FUNCTIONS[name]
            for node in ast.walk(function)
            if isinstance(node, (ast.Import, ast.ImportFrom))
        ]

    assert _offenders(inside) == {}


def test_data_is_never_code():
    def makes_code(name):
        modules = {module for module in IMPORTS[name] if module.split(".")[0] in FORBIDDEN_MODULES}
        return modules | {
            node.id if isinstance(node, ast.Name) else node.attr
            for node in NODES[name]
            if (isinstance(node, ast.Name) and node.id in FORBIDDEN_NAMES)
            or (
                isinstance(node, ast.Attribute)
                and node.attr in {"eval", "exec"}
                and isinstance(node.value, ast.Name)
                and node.value.id == "builtins"
            )
        }

    assert _offenders(makes_code) == {}


def test_an_import_path_comes_from_the_settings_alone():
    # These from the settings, the command line of a test, or its environment.
    users = {"backends/__init__.py", "contrib/django_tasks/discovery.py", "contrib/email/courier.py"}
    users |= {"channels/function.py", "observe/access.py", "testing/contract/suite.py", "worker/settings_in_test.py"}
    # These load modules of this package, by constant names.
    users |= {"api/watch.py", "backends/sqlite/__init__.py", "cli/commands/top.py", "observe/views.py"}
    users |= {"testing/database.py", "tracing/tracer.py", "tracing/surroundings.py"}
    users |= {"worker/process_metrics/__init__.py"}

    def loads(name):
        return {"import_module", "import_string"} & {module.rpartition(".")[2] for module in IMPORTS[name]}

    assert set(_offenders(loads)) <= users
