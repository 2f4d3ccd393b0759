"""Tests of the German and French catalogues: complete, correct, and without other languages mixed in."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections import Counter
from contextlib import suppress
from datetime import timedelta
from functools import cache
from gettext import GNUTranslations
from html.parser import HTMLParser
from io import StringIO
from pathlib import Path
from urllib.parse import urlencode

import django
import pytest
from django.contrib import messages
from django.contrib.admin.models import LogEntry
from django.contrib.admin.utils import quote
from django.core.management import call_command
from django.urls import reverse
from django.utils import translation

from jobqueue.admin import display
from jobqueue.admin.actions.verbs import tell_left_alone
from jobqueue.clock import SYSTEM
from jobqueue.handlers.registry import registry
from jobqueue.models import Job
from jobqueue.orders import VERBS, worded
from jobqueue.orders.refusals import WORDS
from jobqueue.policy.settling import settled
from jobqueue.records import Again, Dead, Ending, Failure, Ground, Scope
from jobqueue.schedules import operation
from jobqueue.testing.contract.harness import put, settle, take_one
from jobqueue.testing.contract.ports.registering import worker
from tests.admin import catalogue
from tests.admin.conftest import ALL, STATUSES, told
from tests.app import edited
from tests.conftest import ON_SQLITE

LANGUAGES = ("de", "fr")
CATALOGUES = {language: catalogue.read(catalogue.place(language, "po")) for language in LANGUAGES}
#: Django's own admin, whose words for the same texts a second catalogue would replace.
DJANGO = Path(django.__file__).parent / "contrib" / "admin"
#: What is typed or stored as it stands, in any language.
TYPED = (
    *("manage.py runworker", "[redacted]", "error:", "id:01J8*", "payload.image_id:7", '"7"', "15m, 2h", "2026-01-31"),
    *("queued, in_progress, completed, failed", "dead_letter", "django.tasks", "UTC", "⌘C", "_ . : / @ -", "JSON", "…"),
)
PLACEHOLDER = re.compile(r"%\(\w+\)[a-z]|%[a-z%]")
NAMED = re.compile(r"%\(\w+\)[a-z]")
MARKUP = re.compile(r"</?\w+[^>]*>")

each_language = pytest.mark.parametrize("language", LANGUAGES)


# The catalogues


def test_every_text_stands_where_the_tools_find_it():
    # Lengths of time are marked in their table.
    assert list(catalogue.out_of_reach()) == ["scales.py: gettext(unit)"]


@each_language
def test_a_catalogue_has_each_text_of_the_sources_and_no_other(language):
    _header, entries = CATALOGUES[language]
    assert {entry.text for entry in entries} == catalogue.asked()
    assert len(entries) == len({entry.text[:2] for entry in entries})


@each_language
def test_every_text_is_translated_and_nothing_is_guessed(language):
    _header, entries = CATALOGUES[language]
    assert [entry.text.one for entry in entries if not all(entry.forms) or "fuzzy" in entry.flags] == []
    assert {len(entry.forms) for entry in entries if entry.text.many} == {2}


@each_language
def test_a_translation_has_the_placeholders_and_the_markup_of_its_source(language):
    _header, entries = CATALOGUES[language]
    for source, form in (pair for entry in entries for pair in entry.pairs):
        for pattern in (PLACEHOLDER, MARKUP):
            assert Counter(pattern.findall(form)) == Counter(pattern.findall(source)), source


@each_language
def test_what_is_typed_is_the_same_in_every_language(language):
    _header, entries = CATALOGUES[language]
    for source, form in (pair for entry in entries for pair in entry.pairs):
        assert [one for one in TYPED if (one in source) and (one not in form)] == [], source


@each_language
def test_a_text_that_names_a_button_calls_it_as_it_is_called(language):
    _header, entries = CATALOGUES[language]
    labels = {entry.text.one: entry.forms[0] for entry in entries if entry.text.context == "verb"}
    with translation.override(language):
        labels["History"] = translation.gettext("History")
    named = [(name, entry.forms[0]) for entry in entries for name in re.findall("“([^”]+)”", entry.text.one)]
    assert {name for name, _form in named} >= {"Retry", "Run now", "History"}
    assert [form for name, form in named if name in labels and labels[name] not in form] == []


@each_language
def test_what_djangos_admin_says_too_is_said_as_there(language):
    _header, entries = CATALOGUES[language]
    ours, theirs = catalogue.keys(entries), catalogue.compiled(DJANGO / f"locale/{language}/LC_MESSAGES/django.mo")
    both = {key for key in ours if key in theirs}
    assert {"Home", "Search", "No, take me back"} <= both
    assert {key: ours[key] for key in both} == {key: theirs[key] for key in both}


@each_language
def test_the_compiled_catalogue_is_that_of_the_text(language):
    header, entries = CATALOGUES[language]
    assert catalogue.compiled(catalogue.place(language, "mo")) == catalogue.keys(entries)
    with catalogue.place(language, "mo").open("rb") as file:
        assert GNUTranslations(file).info()["language"] == language
    assert "charset=UTF-8" in header
    assert "Date" not in header  # else each refresh would be a change


@each_language
@pytest.mark.skipif(not shutil.which("xgettext"), reason="the tools of gettext are not installed")
def test_a_refresh_with_djangos_command_changes_nothing(language, tmp_path):
    package = shutil.copytree(catalogue.PACKAGE, tmp_path / "jobqueue")
    command = [sys.executable, "-m", "django", "makemessages", "-l", language, "--no-location", "--no-wrap"]
    subprocess.run(command, cwd=package, check=True, capture_output=True)
    _header, entries = catalogue.read(package / "locale" / language / "LC_MESSAGES" / "django.po")
    assert sorted(entries) == sorted(CATALOGUES[language][1])


def test_no_script_has_a_sentence_of_its_own():
    scripts = list((catalogue.PACKAGE / "static").rglob("*.js"))
    assert scripts
    assert [found for one in scripts for found in re.findall(r"[\"'`][A-Z][a-z]+ [a-z][^\"'`]*", one.read_text())] == []


# Numbers in sentences


@pytest.mark.parametrize(
    ("language", "count", "text"),
    [
        ("de", 0, "0 Jobs sind wieder eingereiht."),
        ("de", 1, "1 Job ist wieder eingereiht."),
        ("de", 2, "2 Jobs sind wieder eingereiht."),
        ("fr", 0, "0 tâche est de nouveau en file."),
        ("fr", 1, "1 tâche est de nouveau en file."),
        ("fr", 2, "2 tâches sont de nouveau en file."),
        ("fr", 1_000_000, "1000000 tâches sont de nouveau en file."),
    ],
)
def test_a_sentence_agrees_with_its_number(language, count, text):
    with translation.override(language):
        assert VERBS["retry"].text.success(count) % {"count": count} == text


@pytest.mark.parametrize(("language", "text"), [("de", "1.234 Jobs löschen"), ("fr", "Purger 1\u202f234 tâches")])
def test_a_question_chooses_its_form_by_one_number_and_shows_another(language, text):
    with translation.override(language):
        shown = translation.gettext("%(count)s") % {"count": "1.234" if language == "de" else "1\u202f234"}
        assert VERBS["purge"].text.question(1234) % {"count": 1234, "shown": shown} == text


@pytest.mark.parametrize(
    ("language", "days", "ago", "to_come", "length"),
    [
        ("en", 3, "3 days ago", "in 3 days", "3 days"),
        ("de", 1, "vor 1 Tag", "in 1 Tag", "1 Tag"),
        ("de", 3, "vor 3 Tagen", "in 3 Tagen", "3 Tage"),
        ("de", 70, "vor 2 Monaten", "in 2 Monaten", "2 Monate"),
        ("fr", 3, "il y a 3 jours", "dans 3 jours", "3 jours"),
    ],
)
def test_how_far_away_a_moment_is_has_the_case_that_goes_with_it(language, days, ago, to_come, length):
    now, far = SYSTEM.now(), timedelta(days=days)
    with translation.override(language):
        said = (display.ago(now - far, now), display.ago(now + far, now), display.length(far))
    assert tuple(one.replace("\xa0", " ") for one in said) == (ago, to_come, length)


def test_a_number_has_the_readers_comma():
    with translation.override("fr"):
        assert display.duration(1.26) == "1,3\xa0s"
    assert display.duration(1.26) == "1.3 s"


# Why jobs are left alone


def test_every_ground_has_words_that_say_what_the_backends_say():
    assert set(WORDS) == set(Ground)
    refusals = [ground.refusal("7", "completed") for ground in Ground]
    assert [one.reason for one in worded(refusals)] == [one.reason for one in refusals]


@pytest.mark.parametrize(
    ("language", "words"),
    [
        ("en", "is in progress; only cancelled jobs and dead letters are retried"),
        ("de", "ist in Arbeit; nur abgebrochene und aufgegebene Jobs werden erneut versucht"),
        ("fr", "est en cours\xa0; seules les tâches annulées et les tâches abandonnées sont réessayées"),
    ],
)
def test_a_refusal_is_worded_in_the_readers_language(queue, job_in, language, words):
    with translation.override(language):
        (refusal,) = worded(queue.operator.retry([job_in("in_progress")]).refused)
        assert refusal.reason == words
        assert [one.reason for one in worded([refusal])] == [words]


#: What is said of one job that failed and of two.
LEFT_ALONE = {
    ("en", Ground.HAS_ENDED): (
        "1 job was left alone: it is cancelled already (a).",
        "Each of 2 jobs was left alone: it is cancelled already (a, b).",
    ),
    ("en", Ground.KEY_IS_HELD): (
        "1 job was left alone: it cannot be queued again: a newer job holds its unique key 'failed' (a).",
        "Each of 2 jobs was left alone: it cannot be queued again: a newer job holds its unique key 'failed' (a, b).",
    ),
    ("de", Ground.HAS_ENDED): (
        "1 Job blieb unverändert: er ist schon abgebrochen (a).",
        "Jeder von 2 Jobs blieb unverändert: er ist schon abgebrochen (a, b).",
    ),
    ("de", Ground.MISSING): (
        "1 Job blieb unverändert: er ist nicht vorhanden (a).",
        "Jeder von 2 Jobs blieb unverändert: er ist nicht vorhanden (a, b).",
    ),
    ("fr", Ground.HAS_ENDED): (
        "1 tâche est restée inchangée\xa0: elle est déjà annulée (a).",
        "Chacune des 2 tâches est restée inchangée\xa0: elle est déjà annulée (a, b).",
    ),
}


@pytest.mark.parametrize(("language", "ground"), LEFT_ALONE)
def test_jobs_that_were_left_alone_are_told_in_a_sentence(monkeypatch, rf, language, ground):
    said = []
    monkeypatch.setattr(messages, "warning", lambda _request, message: said.append(message))
    with translation.override(language):
        for ids in ("a", "ab"):
            tell_left_alone(rf.get("/"), worded(ground.refusal(one, "failed") for one in ids))
    assert tuple(said) == LEFT_ALONE[language, ground]


@each_language
def test_what_is_logged_is_in_the_language_of_who_did_it(queue, sign_in, job_in, language):
    keeper, job_id = sign_in(*ALL, "pause_queue"), job_in("dead_letter")
    with translation.override(language):
        expected = [f"{translation.gettext(word)}: x" for word in ("Paused", "Retried")]
        there = reverse("admin:jobqueue_queue_pause") + "?scope=queue&name=mail"
        keeper.client.post(there, {"why": "x"})
        keeper.do("retry", job_id, why="x")
    assert list(LogEntry.objects.order_by("pk").values_list("change_message", flat=True)) == expected


@ON_SQLITE
@pytest.mark.parametrize("status", STATUSES)
def test_the_commands_stay_english(queue, job_in, status):
    job_id, said = job_in(status), []
    for language in ("en", "de"):
        out = StringIO()
        with translation.override(language), suppress(SystemExit):
            call_command("jobqueue", "why", job_id, stdout=out)
        said.append(re.sub(r"\d+ seconds?", "a moment", out.getvalue()))
    assert said[0] == said[1] != ""


# The pages


class Words(HTMLParser):
    """Reads what a page says: its texts, and the attributes that are read out or shown by a script."""

    SAID = ("title", "aria-label", "alt", "placeholder", "summary")
    OF_SCRIPTS = ("data-done", "data-selected", "data-jq-stale", "data-jq-stranger", "data-jq-pause", "data-jq-go-on")
    OF_SCRIPTS += ("data-jq-silent", "data-jq-out", "data-jq-changed")

    def __init__(self, page):
        super().__init__()
        self.texts = []
        self._silent = 0
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self._silent += tag in ("script", "style")
        given = dict(attrs)
        self.texts += [given[name] for name in (*self.SAID, *self.OF_SCRIPTS) if given.get(name)]
        if tag == "input" and given.get("type") in ("submit", "button"):
            self.texts.append(given.get("value", ""))

    def handle_endtag(self, tag):
        self._silent -= tag in ("script", "style")

    def handle_data(self, data):
        if not self._silent:
            self.texts.append(data)


def left_over(page, language):
    """What a page says in English that the catalogue would say otherwise."""
    texts = {" ".join(text.split()) for text in Words(page).texts} - {""}
    whole, patterns = _sources(language)
    found = {text for text in texts if any(not form.fullmatch(text) for form in whole.get(text, ()))}
    for source, form in patterns:
        found |= {text for text in texts if source.fullmatch(text) and not form.fullmatch(text)}
    return found


@cache
def _sources(language):
    """Return the patterns of translations by their whole English text, and pairs of patterns of those with values."""
    whole, patterns = {}, []
    for source, form in (pair for entry in CATALOGUES[language][1] for pair in entry.pairs):
        if source != form and len(PLACEHOLDER.sub("", source)) > 3:
            if NAMED.search(source):
                patterns.append((_pattern(source), _pattern(form)))
            else:
                whole.setdefault(source.replace("%%", "%"), []).append(_pattern(form))
    return whole, patterns


def _pattern(source):
    """Return the pattern of the texts that are a source with values in its placeholders."""
    return re.compile(".+".join(re.escape(part.replace("%%", "%")) for part in NAMED.split(source)))


@pytest.fixture
def keeper(sign_in, monkeypatch):
    """Someone who may do everything, where payloads of a type can be edited."""
    monkeypatch.setattr(registry, "_types", dict(registry._types))
    edited.register()
    return sign_in(*ALL, "pause_queue")


@pytest.fixture
def jobs(queue, job_in):
    """By status, the id of a job that has all that a page can show; with a worker, a pause and a past."""
    queue.workers.enlist(worker("host:1:nonce", host="web7", busy=1))
    queue.operator.pause(Scope.QUEUE, "mail", "-")
    # The one that waits comes last, for the others are claimed.
    found = {status: job_in(status, parent_id="01PARENT", context='{"user": "ada"}') for status in reversed(STATUSES)}
    found["retrying"] = put(queue, "greet")
    failure = Failure.of(Ending.FAILED, error_class="OSError", message="-", traceback="-", fingerprint="disk")
    claim = take_one(queue, types=frozenset({"greet"}))
    assert settle(queue, settled(claim, Again(timedelta(hours=1)), failure)) == ()
    found["grouped"] = put(queue, "greet")
    claim = take_one(queue, types=frozenset({"greet"}))
    assert settle(queue, settled(claim, Dead("attempts used up"), failure)) == ()
    put(queue, "unknown", queue="mail")
    found["editable"] = put(queue, "charge", payload=json.dumps({"name": "Ada", "password": "hunter2-and-more"}))
    rows = Job.objects.using(queue.alias)
    rows.filter(pk=found["editable"]).update(status="dead_letter", error_fingerprint="disk", error="-")
    rows.filter(pk=found["in_progress"]).update(progress={"percent": 12.5, "at": "-"}, lease_owner="host:1:nonce")
    rows.filter(pk=found["completed"]).update(result={"list": [1, 2, "x" * 500]})
    return found


def at(page, /, *args, **query):
    there = reverse(f"admin:jobqueue_{page}", args=[quote(one) for one in args])
    return f"{there}?{urlencode(query)}" if query else there


def addresses(jobs):
    """By an address, a text that its page has."""
    yield "/admin/", "Dead letters"
    yield "/admin/jobqueue/", "Needs attention"
    yield at("dashboard_changelist"), "Age of the oldest due job"
    yield at("dashboard_changelist", window="week", type="greet", queue="default"), "Last week"
    yield at("job_changelist"), "Search syntax"
    yield at("job_changelist", q="type:greet"), "Show all"
    yield at("job_changelist", q="statsu:failed"), "Did you mean “%(name)s”?"
    for status, job_id in jobs.items():
        waits = status in ("queued", "retrying")
        yield at("job_change", job_id), "Why is it not running?" if waits else "Current state"
    yield at("job_history", jobs["dead_letter"]), "Home"
    yield at("job_edit", jobs["editable"]), "Review the changes"
    yield at("deadletter_changelist"), "Dead letters by error"
    yield at("deadletter_by_error", fingerprint="disk"), "The latest failure"
    yield at("deadletter_by_error", fingerprint=""), "Errors without a fingerprint"
    yield at("deadletter_all"), "By error"
    yield at("deadletter_change", jobs["dead_letter"]), "Timeline"
    yield at("queue_changelist"), "Oldest due"
    for verb, text in (("pause", "Pause a queue"), ("resume", "Resume a queue")):
        yield at(f"queue_{verb}", scope="queue", name="mail"), text
    yield at("worker_changelist"), "Host and process"
    yield at("worker_change", "host:1:nonce"), "Running jobs"


def says(page, text):
    """Whether a page has a text in the language that is active."""
    said = " ".join(" ".join(Words(page).texts).split())
    return all(" ".join(part.split()) in said for part in NAMED.split(translation.gettext(text)))


@ON_SQLITE
@each_language
def test_every_page_speaks_the_readers_language_alone(queue, keeper, jobs, language):
    with translation.override(language):
        for address, text in addresses(jobs):
            answer = keeper.client.get(address)
            page = answer.content.decode()
            assert (address, answer.status_code) == (address, 200)
            assert f'lang="{language}"' in page
            assert says(page, text), (address, text)
            assert (address, left_over(page, language)) == (address, set())


@ON_SQLITE
@each_language
def test_the_pages_of_schedules_are_in_the_readers_language(queue, sign_in, language):
    keeper = sign_in("view_job", *(f"{verb}_schedule" for verb in ("edit", "pause", "run", "remove")))
    fields = operation.read_fields("send_welcome", "0 3 * * *", "Asia/Kolkata", {"user_id": 7}, {})
    one = operation.add("nightly", fields)
    pages = {
        "change": "Next slots",
        "edit": "Slots that no worker was there for",
        "pause": "The schedule will enqueue no more jobs until it is resumed. Its jobs continue.",
        "run": "A job will be enqueued now, beside the slots.",
        "remove": "The schedule will be removed. Its jobs stay.",
    }
    with translation.override(language):
        lists = (at("schedule_changelist"), "Add a schedule"), (at("schedule_make", type="send_welcome"), "Jitter")
        for address, text in (*lists, *((at(f"schedule_{page}", one.id), text) for page, text in pages.items())):
            page = keeper.client.get(address).content.decode()
            assert says(page, text), (address, text)
            # The words of a rule are English in any language, and marked as such.
            rest = page.replace('lang="en">at 03:00 every day<', "><")
            assert (address, left_over(rest, language)) == (address, set())


#: By verb, what it has to be told; and what none can be told.
RIGHT = {"reschedule": {"amount": "5", "unit": "days"}, "prioritise": {"priority": "7"}, "move": {"queue": "other"}}
WRONG = {"queue": "a b", "priority": "77", "per_minute": "-1", "scheduled_at": "1999-01-01T00:00", "why": "\u202e"}


@ON_SQLITE
@each_language
@pytest.mark.parametrize("verb", VERBS)
def test_every_question_and_every_answer_is_in_the_readers_language(queue, keeper, jobs, language, verb):
    with translation.override(language):
        asked = keeper.act(verb, *jobs.values())
        wrong = keeper.agree(asked, **WRONG)
        done = keeper.agree(asked, why="-", **RIGHT.get(verb, {}))
        for answer in (asked, wrong, done):
            assert answer.status_code == 200
            assert left_over(answer.content.decode(), language) == set()
        assert asked.context["asked"] in asked.content.decode()
        assert told(done) or verb == "purge"


@ON_SQLITE
@each_language
def test_what_a_search_complains_of_is_said_in_the_readers_language(queue, keeper, language):
    with translation.override(language):
        for typed in ('"', "colour:red", "type:", "status:gone", "id:*", "payload:1", "after:soon", "payload.token:x"):
            answer = keeper.list(q=typed)
            assert answer.context["cl"].complaint
            assert (typed, left_over(answer.content.decode(), language)) == (typed, set())


@ON_SQLITE
@each_language
def test_the_change_of_a_payload_is_shown_in_the_readers_language(queue, keeper, jobs, language):
    there = reverse("admin:jobqueue_job_edit", args=[jobs["editable"]])
    with translation.override(language):
        seen = keeper.client.get(there).context["form"].initial["seen"]
        given = {"seen": seen, "payload": json.dumps({"name": "Eve", "password": "[redacted]"})}
        review = keeper.client.post(there, given)
        done = keeper.client.post(there, {**given, "confirmed": "yes"}, follow=True)
        wrong = keeper.client.post(there, {"payload": "{", "seen": seen}, follow=True)
        for answer in (review, done, wrong):
            # The keys of the payload are what they are.
            assert left_over(answer.content.decode(), language) - {"name", "limits"} == set()
        assert says(review.content.decode(), "Changes")
        assert told(done) == [translation.gettext("The job is queued again with another payload.")]
