"""Tests of the commands' reference, which must name every command and option."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest
from django.core.management import load_command_class

REFERENCE = (Path(__file__).resolve().parents[2] / "docs" / "reference" / "commands.md").read_text(encoding="utf-8")
OF_DJANGO = {"--settings", "--pythonpath", "--traceback", "--verbosity"}


def parsers():
    parser = load_command_class("jobqueue", "jobqueue").create_parser("manage.py", "jobqueue")
    (verbs,) = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    return verbs.choices


@pytest.mark.parametrize("verb", parsers())
def test_a_verb_and_its_options_are_in_the_reference(verb):
    assert f"`{verb}" in REFERENCE
    options = {option for action in parsers()[verb]._actions for option in action.option_strings if option[:2] == "--"}
    assert {option for option in options - OF_DJANGO if option not in REFERENCE} == set()


@pytest.mark.parametrize("verb", parsers())
def test_a_verb_tells_examples_and_exit_codes(verb):
    text = parsers()[verb].format_help()
    assert f"manage.py jobqueue {verb}" in text
    assert "exit codes:" in text
