"""Tests of the pages: code compiles and names what exists, commands parse, links lead somewhere."""

from __future__ import annotations

import ast
import builtins
import functools
import inspect
import re
import shlex
import symtable
from importlib import import_module
from pathlib import Path

import django
import pytest
from django import conf
from django.core.management import CommandError, get_commands, load_command_class

import jobqueue
from jobqueue import api
from jobqueue.handlers.options import OPTION_NAMES
from tests.docs.pages import DOCS, FRONT, PAGES, blocks, name, prose

#: Commands of the example project, and of pages that tell what a verb is.
NOT_HERE = {"demo", "forget", "import_orders", "learn", "summarise"}
PLACEHOLDERS = {"VERB", "…"}
#: What django.tasks calls options that jobs have under other names.
OF_TASKS = {"queue_name", "run_after", "backend", "max_attempts"}
#: Packages that are there; what a block imports from others is the reader's own.
IMPORTED_FROM = {"jobqueue", "example_project", "django", "pydantic"}

every_page = pytest.mark.parametrize("page", [*PAGES, *FRONT], ids=name)


def code(page):
    """The syntax trees of a page's Python."""
    for kind, text in blocks(page):
        if kind == "python":
            flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT | ast.PyCF_ONLY_AST
            yield compile(text, str(page), "exec", flags, dont_inherit=True)


def calls(page):
    return [node for tree in code(page) for node in ast.walk(tree) if isinstance(node, ast.Call)]


@every_page
def test_code_compiles(page):
    list(code(page))


@every_page
def test_code_imports_what_exists(page):
    for tree in code(page):
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module.split(".")[0] in IMPORTED_FROM:
                if node.module == "django.tasks" and django.VERSION < (6,):
                    continue
                module = import_module(node.module)
                assert [one.name for one in node.names if not hasattr(module, one.name)] == []
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "jobqueue":
                assert hasattr(jobqueue, node.attr)


def names_of(text):
    """What a block of Python uses without defining it, in whatever function."""
    top = symtable.symtable(text, "block", "exec")
    own = {one.get_name() for one in top.get_symbols() if one.is_assigned() or one.is_imported() or one.is_namespace()}
    used, tables = set(), [top]
    while tables:
        table = tables.pop()
        tables += table.get_children()
        used |= {
            one.get_name() for one in table.get_symbols() if one.is_referenced() and (table is top or one.is_global())
        }
    return used - own - set(dir(builtins))


def names_of_settings():
    """What a file of settings has to which a reader adds: that of ``startproject``."""
    template = Path(conf.__file__).parent / "project_template" / "project_name" / "settings.py-tpl"
    return set(re.findall(r"^([A-Z_]+) = ", template.read_text(encoding="utf-8"), re.MULTILINE))


@every_page
def test_code_defines_the_names_that_it_uses(page):
    missing = {}
    for kind, text in blocks(page):
        if kind == "python":
            is_settings = re.match(r"# (\S+/)?settings\.py", text)
            names = names_of(text) - (names_of_settings() if is_settings else set())
            missing |= {text.partition("\n")[0]: names} if names else {}
    assert missing == {}


def test_a_name_that_is_missing_is_found():
    assert names_of("import os\n\ndef f(a: Path) -> int:\n    return [b for b in a] + os.sep + c") == {"Path", "c"}
    assert {"BASE_DIR", "INSTALLED_APPS", "DATABASES"} <= names_of_settings()


@every_page
def test_code_gives_options_that_exist(page):
    of_job = OPTION_NAMES | set(inspect.signature(api.job).parameters)
    for call in calls(page):
        given = {keyword.arg for keyword in call.keywords}
        if isinstance(call.func, ast.Name) and call.func.id == "job":
            assert given <= of_job
        if isinstance(call.func, ast.Attribute) and call.func.attr == "using":
            assert given <= OPTION_NAMES | OF_TASKS


@functools.cache
def parser(command):
    return load_command_class("jobqueue", command).create_parser("manage.py", command)


def typed(page):
    """The arguments of each management command that a page types, in blocks and in its prose."""
    for kind, text in blocks(page):
        if kind == "sh":
            text = re.sub(r"<<'(\w+)'\n.*?^\1$", "", text, flags=re.MULTILINE | re.DOTALL)
            yield from (line.partition("manage.py ")[2] for line in text.splitlines() if "manage.py " in line)
        elif kind == "dockerfile":
            continue
    yield from re.findall(r"`(?:python )?manage\.py ([^`]+)`", prose(page).replace("\n", " "))


@every_page
def test_commands_can_be_typed(page):
    for line in typed(page):
        words = shlex.split(re.split(r" \| | && |;", line)[0], comments=True)
        if words[0] in NOT_HERE or PLACEHOLDERS & set(words):
            continue
        assert words[0] in get_commands()
        if words[0] in ("jobqueue", "runworker") and words[1:]:
            try:
                parser(words[0]).parse_args(words[1:])
            except (SystemExit, CommandError) as error:
                pytest.fail(f"manage.py {line}: {error}")


def anchors(page):
    """The headings of a page, as links name them."""
    headings = re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@every_page
def test_links_lead_somewhere(page):
    broken = []
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        if re.match(r"\w+:", target):
            continue
        path, _, anchor = target.partition("#")
        there = (page.parent / path).resolve() if path else page
        if not there.exists() or (anchor and anchor not in anchors(there)):
            broken.append(target)
    assert broken == []


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_a_page_can_be_found(page):
    index = (DOCS / "index.md").read_text(encoding="utf-8")
    place = str(page.relative_to(DOCS)).removesuffix(".md")
    assert place == "index" or (f"\n{place}\n" in index and f"({place}.md)" in index)
