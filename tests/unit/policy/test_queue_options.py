"""Tests of the options of queues: which entry applies to a queue, and what is said of a mistake."""

from __future__ import annotations

import pytest
from django.core.exceptions import ImproperlyConfigured

from jobqueue import queues
from jobqueue.policy.queue_options import OPTIONS, mistakes, options_of
from jobqueue.records import QueueOptions, WhenFull


def _capacity(queue, *names):
    """Return the place of the name that applies to a queue, from 1, or ``None``."""
    return options_of(queue, {name: {"capacity": place} for place, name in enumerate(names, 1)}).capacity


@pytest.mark.parametrize(
    ("queue", "names", "wanted"),
    [
        ("mail", (), None),
        ("mail", ("mails", "mai"), None),
        ("import.csv", ("import.*", "import.csv"), 2),
        ("import.csv", ("*", "import.*", "import*"), 2),
        ("import.csv", ("*.csv", "import.*"), 2),
        ("a.b", ("a*", "*b"), 1),
        ("a.b", ("*b", "a*"), 1),
        ("import.", ("import.*",), 1),
        ("importX", ("import.*",), None),
        ("a-b-c", ("a*b*c",), 1),
        ("a-b-cd", ("a*b*c",), None),
        ("any", ("*",), 1),
    ],
)
def test_the_exact_name_applies_before_the_pattern_with_the_most_characters(queue, names, wanted):
    assert _capacity(queue, *names) == wanted


def test_entries_are_not_merged():
    given = {"*": {"capacity": 5, "when_full": "raise"}, "mail": {"capacity": 7}}
    assert options_of("mail", given) == QueueOptions(capacity=7)
    assert options_of("other", given) == QueueOptions(capacity=5, when_full=WhenFull.RAISE)


def test_each_option_is_a_field():
    assert set(OPTIONS) == set(QueueOptions.__slots__)


@pytest.mark.parametrize(
    ("given", "sentence", "hint"),
    [
        ([], "JOBQUEUE['QUEUES'] must be a dict of queues and their options, not [].", "Write JOBQUEUE"),
        ({"a b": {}}, "has the key 'a b', which is no name of a queue and no pattern.", "Use letters"),
        ({7: {}}, "has the key 7,", "Use letters"),
        ({"mail": 5}, "JOBQUEUE['QUEUES']['mail'] must be a dict of options, not 5.", "The options are capacity"),
        ({"im.*": {"capcity": 5}}, "['QUEUES']['im.*'] has the unknown option 'capcity'.", "Did you mean 'capacity'?"),
        ({"mail": {7: 5}}, "['QUEUES']['mail'] has the unknown option 7.", "Choose one of: block_for, capacity"),
        ({"mail": {"capacity": "9"}}, "['mail']['capacity'] must be None or a whole number of jobs", "default is None"),
        ({"mail": {"capacity": 0}}, "from 1 to 1,000,000,000, not 0.", "The default is None."),
        ({"mail": {"capacity": True}}, "not True.", "The default is None."),
        (
            {"mail": {"capacity": 5, "when_full": "rise"}},
            "['mail']['when_full'] must be one of 'accept', 'shed', 'block', 'raise', not 'rise'.",
            "Did you mean 'raise'?",
        ),
        ({"mail": {"capacity": 5, "when_full": ["shed"]}}, "not ['shed'].", "The default is"),
        ({"mail": {"capacity": 5, "block_for": 5}}, "has 'block_for', but its producers don't wait", "Add 'when_full'"),
        (
            {"mail": {"capacity": 5, "when_full": "block", "block_for": 0}},
            "must be seconds, above 0",
            "default is 30.0",
        ),
        ({"mail": {"when_full": "shed"}}, "has 'when_full', but no 'capacity'", "Add 'capacity'"),
    ],
)
def test_a_mistake_is_named_with_its_place_and_the_nearest_right_word(given, sentence, hint):
    (found,) = mistakes(given)
    assert sentence in found.sentence
    assert hint in found.hint


def test_all_mistakes_are_found():
    assert len([*mistakes({"a": {"capacity": 0, "other": 1}, "b c": {}})]) == 3


def test_a_valid_setting_has_no_mistakes():
    assert not [*mistakes({"a": {}, "b.*": {"capacity": None}, "*": {"capacity": 5, "when_full": WhenFull.SHED}})]


def test_the_look_up_follows_the_settings_and_stays_bounded(settings, monkeypatch):
    settings.JOBQUEUE = {"QUEUES": {"mail": {"capacity": 5}}}
    assert queues.options_of("mail").capacity == 5
    assert queues.options_of("mail") is queues.options_of("mail")
    settings.JOBQUEUE = {"QUEUES": {"mail": {"capacity": 6}}}
    assert queues.options_of("mail").capacity == 6
    monkeypatch.setattr(queues, "_MOST_KEPT", 10)
    for number in range(100):
        queues.options_of(f"made-up-{number}")
    assert len(queues._kept) <= 10


def test_a_wrong_setting_is_refused_at_the_first_look_up(settings):
    settings.JOBQUEUE = {"QUEUES": {"mail": {"capcity": 5}}}
    with pytest.raises(ImproperlyConfigured, match="has the unknown option 'capcity'"):
        queues.options_of("mail")
