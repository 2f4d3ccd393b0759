"""Tests of the setting: every mistake is named with its place and the nearest right word, before anything runs."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.core.exceptions import ImproperlyConfigured

from jobqueue import conf
from jobqueue.checks import check_alerts, check_settings
from jobqueue.observe.health import Cause
from jobqueue.policy.alerts.rules import DEFAULTS, MEASURES
from jobqueue.policy.alerts.settings import mistakes, read


def rule(**values):
    return {"rules": [{"rule": "queue_deep", **values}]}


def channel(**values):
    return {"channels": {"ops": values}}


WRONG = {
    "a list": ([], "must be a dict", "Write"),
    "an unknown key": ({"chanels": {}}, "unknown key 'chanels'", "'channels'"),
    "too often": ({"every": 1}, "['every'] must be at least 5 seconds, not 1", ""),
    "no time": ({"remind": "daily"}, "['remind'] must be seconds or a timedelta", ""),
    "no site": ({"site": "shop"}, "['site'] must be a URL", "https://"),
    "rules by name": ({"rules": {}}, "['rules'] must be a list", "queue_deep"),
    "no rule": ({"rules": [7]}, "['rules'][0] must be a dict", ""),
    "a misspelt key": (rule(abov=7), "['rules'][0] has the unknown key 'abov'", "'above'"),
    "a wrong threshold": (rule(above=-1), "['above'] must be a number of due jobs, not -1", "1000"),
    "a share of 95": (
        {"rules": [{"rule": "success_low", "below": 95}]},
        "['below'] must be a share from 0 to 1, not 95",
        "0.95",
    ),
    "the wrong word": (rule(below=7), "has the threshold 'above'", ""),
    "no number": ({"rules": [{"rule": "no_worker", "above": 7}]}, "compares no number", "queue_deep"),
    "a queue of what has none": (
        {"rules": [{"rule": "slow", "queue": "mail", "above": 7}]},
        "is measured by type",
        "Leave out 'queue'",
    ),
    "a level": (rule(level="eror"), "['level'] is 'eror'", "'error'"),
    "a time": (rule(**{"for": -1}), "['for'] must not be negative", ""),
    "two of one": ({"rules": [{"rule": "slow"}, {"rule": "slow"}]}, "['rules'][1] is about the same jobs", ""),
    "channels": ({"channels": []}, "['channels'] must be a dict", "pagerduty"),
    "a kind": (channel(via="slak"), "['via'] is 'slak'", "'slack'"),
    "an option": (channel(via="slack", ulr="x"), "unknown option 'ulr'", "'url'"),
    "what is needed": (channel(via="slack"), "lacks 'url'", ""),
    "an address": (channel(via="email", addresses="ops"), "['addresses'] must be a list of e-mail", ""),
    "a name": ({"channels": {"a b": {"via": "log"}}}, "has the key 'a b'", ""),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_mistake_is_named(name):
    given, words, hint = WRONG[name]
    found = [*mistakes(given)]
    assert any(words in one.sentence and hint in one.hint for one in found), found
    assert all(one.sentence.startswith("JOBQUEUE['ALERTS']") for one in found)


def test_a_secret_is_not_quoted():
    (found,) = mistakes(channel(via="slack", url="hooks.slack.com/services/T0/B0/secret"))
    assert "secret" not in found.sentence + found.hint


def test_a_mistake_is_an_error_of_the_setting(settings):
    settings.JOBQUEUE = {"ALERTS": rule(above="many")}
    (found,) = check_settings()
    assert (found.id, check_alerts()) == ("jobqueue.E003", [])
    with pytest.raises(ImproperlyConfigured, match="number of due jobs"):
        conf.get("ALERTS")


@pytest.mark.parametrize(
    ("given", "identity", "words"),
    [
        ({"rules": [{"rule": "queue_depth"}]}, "jobqueue.E021", "'queue_deep'"),
        ({"rules": [{"rule": "slow", "type": "send_welcom"}]}, "jobqueue.W021", "send_welcome"),
        (channel(via="function", function="tests.nowhere.tell"), "jobqueue.E022", "dotted path"),
        (channel(via="email", addresses=["ops@example.com"]), "jobqueue.W022", "site"),
    ],
)
def test_what_the_setting_names_is_checked(settings, given, identity, words):
    settings.JOBQUEUE = {"ALERTS": given}
    (found,) = [one for one in check_alerts() if one.id != "jobqueue.W023"]
    assert found.id == identity
    assert words in found.hint


def test_a_whole_setting_is_read(settings):
    given = {"every": timedelta(minutes=1), "site": "https://shop.example.com/", "remind": 3_600, "resolve_after": 60}
    given |= {"rules": [{"rule": "queue_deep", "queue": "mail", "above": 5, "for": 0}], **channel(via="log")}
    settings.JOBQUEUE = {"ALERTS": given}
    assert [*check_settings(), *check_alerts()] == []
    found = read(given)
    assert (found.every, found.site) == (timedelta(minutes=1), "https://shop.example.com")
    mail, other = found.rules.rule("queue_deep", "mail", "x"), found.rules.rule("queue_deep", "other", "x")
    assert (mail.threshold, mail.wait, mail.queue, mail.gone_for) == (5, timedelta(0), "mail", timedelta(minutes=1))
    assert (other.threshold, other.queue, other.remind) == (1_000, "", timedelta(hours=1))


def test_the_narrowest_rule_applies():
    entries = [{"rule": "overdue", "type": "a", "above": 1}, {"rule": "overdue", "queue": "q", "above": 2}]
    entries += [{"rule": "overdue", "queue": "q", "type": "a", "above": 3, "level": "error"}]
    book = read({"rules": entries}).rules
    found = [book.rule("overdue", *names).threshold for names in (("q", "a"), ("other", "a"), ("q", "b"), ("", ""))]
    assert found == [3, 1, 2, 3_600]


def test_each_rule_with_a_threshold_is_a_cause():
    assert set(MEASURES) | set(DEFAULTS) <= set(Cause)
