"""Tests of the JSON tree: exact, without secrets, and bounded for any content."""

from __future__ import annotations

import json
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobqueue.admin.job import json_tree
from jobqueue.admin.job.json_tree import read, tree
from jobqueue.policy.redaction import Numeral, redact_beginning, redact_data, secret_values, unfolded

#: JSON is shown the same whichever database it comes from.
SQLITE_ALONE = True

VOID = ("br", "img", "input", "link", "meta")


class Read(HTMLParser):
    """Reads a tree as job.js copies it: what stands in it, without the notes."""

    def __init__(self, html):
        super().__init__()
        self.copied, self.notes, self.cuts, self.folds = [], [], [], []
        self._open = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self._open.append((given.get("class") or "").split())
        if tag == "details":
            self.folds.append("open" in given)

    def handle_endtag(self, tag):
        self._open.pop()

    def handle_data(self, data):
        around = [name for names in self._open for name in names]
        if "jq-tree" not in around:
            return
        if "jq-json-note" in around:
            self.notes.append(data)
            return
        self.copied.append(data)
        self.cuts += [data] if "jq-json-cut" in around else []

    @property
    def text(self):
        return "".join(self.copied).strip()


def tree_of(text, label="Payload"):
    return tree(read(text), label)


def drawn(text):
    return Read(tree_of(text))


def exact(text):
    """JSON with its numbers as the letters they are written in."""
    return json.loads(text, parse_int=lambda one: ("#", one), parse_float=lambda one: ("#", one))


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=400),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=20), inner, max_size=5),
    max_leaves=30,
)


@given(JSON)
@settings(deadline=None)
def test_what_is_copied_of_a_tree_is_the_json_again(value):
    found = drawn(json.dumps(value))
    assert found.cuts == []
    assert json.loads(found.text) == redact_data(value)


@pytest.mark.parametrize(
    "number",
    [
        "0",
        "-0",
        "1.0",
        "0.10",
        "1e400",
        "1E5",
        "-1.5e-7",
        "12345678901234567890123",
        "9007199254740993",
        "1" + "0" * 4999,
    ],
)
def test_a_number_is_shown_as_it_is_written(number):
    text = f'{{"a": [{number}], "b": {number}}}'
    assert exact(drawn(text).text) == exact(text) if len(number) < 4000 else drawn(text).text.count(number) == 2


@pytest.mark.parametrize("word", ["NaN", "Infinity", "-Infinity"])
def test_what_another_program_calls_a_number_is_shown(word):
    assert drawn(f"[{word}]").text.split() == ["[", word, "]"]


def test_a_number_longer_than_anybody_reads_is_cut_and_says_so():
    found = drawn("7" * 25_000)
    assert found.cuts == ["… 5,000 more characters are not shown"]


def test_keys_texts_numbers_and_words_are_told_apart():
    page = tree_of('{"a": "x", "b": 1, "c": true, "d": false, "e": null, "f": {}, "g": []}')
    assert '<span class="jq-json-key">&quot;a&quot;</span>: <span class="jq-json-string">&quot;x&quot;</span>' in page
    assert '<span class="jq-json-number">1</span>' in page
    for word in ("true", "false", "null"):
        assert f'<span class="jq-json-word">{word}</span>' in page
    assert json.loads(Read(page).text) == {"a": "x", "b": 1, "c": True, "d": False, "e": None, "f": {}, "g": []}


def test_two_levels_are_unfolded():
    assert drawn('{"a": {"b": {"c": {"d": 1}}}}').folds == [True, True, False, False]


def test_a_fold_says_what_is_in_it():
    assert drawn('{"a": [1], "b": {"c": 1, "d": 2}}').notes == ["…} 2 members", "…] 1 element", "…} 2 members"]


# Secrets


SECRETIVE = {
    "password": "hunter2-a",
    "api_key": 123456,
    "token": {"inner": "hunter2-b"},
    "headers": [{"name": "Authorization", "value": "hunter2-c"}],
    "command": ["login", "--password", "hunter2-d"],
    "text": "connect amqp://ada:hunter2-e@mq/ with token=hunter2-f",
    "max_tokens": 1024,
    "password_changed_at": "2026-01-01",
}


def test_no_secret_is_in_a_tree_and_what_is_none_is():
    found = drawn(json.dumps(SECRETIVE))
    assert "hunter2" not in found.text + "".join(found.notes)
    assert "123456" not in found.text
    assert json.loads(found.text) == redact_data(SECRETIVE)
    assert json.loads(found.text)["max_tokens"] == 1024


def test_no_secret_is_cut_in_two_where_a_text_ends():
    token = "ghp_" + "s3cr3t" * 8
    for before in range(19_940, 20_010, 7):
        found = drawn(json.dumps("x " * (before // 2) + token + " y" * 10_000))
        assert "s3cr3t" not in found.text
        assert found.cuts


def test_no_secret_is_in_what_a_fold_says_of_a_text():
    found = drawn(json.dumps("token=hunter2-and-more " + "x" * 500))
    assert "hunter2" not in "".join(found.notes) + found.text


def test_a_secret_that_begins_before_the_cut_is_not_shown_though_much_before_it_was_hidden():
    hidden = "password=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa "
    text = hidden * 10 + "x" * 600 + "ghp_" + "s3cr3t" * 8
    for length in range(150, 900, 50):
        shown, is_all = redact_beginning(text + " z" * 5_000, length)
        assert "s3cr" not in shown
        assert len(shown) <= length
        assert not is_all


def test_the_beginning_of_a_short_text_is_all_of_it():
    assert redact_beginning("token=abcdef", 100) == ("token=[redacted]", True)
    assert redact_beginning("abcdef", 6) == ("abcdef", True)
    assert redact_beginning("abcdef", 5) == ("abcde", False)


def test_a_number_as_it_is_written_is_a_number_to_redaction():
    number = Numeral("1024")
    assert dict(unfolded({"max_tokens": number, "pin_code": number, "otp": number})) == {
        "max_tokens": "1024",
        "pin_code": "1024",
        "otp": "[redacted]",
    }
    assert secret_values({"otp": Numeral("123456"), "password": "hunter2"}) == ("hunter2",)
    assert redact_data({"a": Numeral("0.10")}) == {"a": "0.10"}


# Hostile texts


def test_markup_is_text():
    page = tree_of(json.dumps({"<b>'\"": "<script>alert(1)</script>&amp;"}), "<i>")
    assert "<script" not in page
    assert "<b>" not in page
    assert "<i>" not in page
    assert json.loads(Read(page).text) == {"<b>'\"": "<script>alert(1)</script>&amp;"}


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        (r'"a\u202eb"', r'"a\u202eb"'),
        (r'"a\u0000b"', r'"a\u0000b"'),
        (r'"a\ud800b"', r'"a\ud800b"'),
        (r'"a\u001b[2Jb"', r'"a\u001b[2Jb"'),
        (r'"a\nb\t\"\\"', r'"a\nb\t\"\\"'),
        (r'{"\u202e": 1}', r'"\u202e": 1'),
        (r'{"\ud800": 1}', r'"\ud800": 1'),
        ('"grüße 漢字 😀"', '"grüße 漢字 😀"'),
    ],
)
def test_what_no_page_can_show_is_spelled_out(written, shown):
    page = tree_of(written)
    page.encode()
    assert shown in Read(page).text
    assert json.loads(Read(page).text) == json.loads(written)


# Bounds


def nested(levels, inner="1", begin='{"a": ', end="}"):
    return begin * levels + inner + end * levels


def test_a_hundred_levels_are_shown():
    found = drawn(nested(100))
    assert found.cuts == []
    assert json.loads(found.text) == json.loads(nested(100))
    assert len(found.folds) == 100


def test_what_is_deeper_is_said_not_to_be_shown():
    for text in (nested(101), nested(200), nested(101, begin="[", end="]")):
        found = drawn(text)
        assert found.cuts == ["… deeper levels are not shown"]
        assert len(found.folds) == 100


@pytest.mark.parametrize("text", [nested(100_000, begin="[", end="]"), '{"a": ', "", "{'a': 1}", "nothing"])
def test_what_cannot_be_read_says_so(text):
    assert "nested too deeply or is not JSON" in tree_of(text)


def test_a_long_text_is_folded_and_all_there():
    text = "".join(f"word {number} " for number in range(500))
    found = drawn(json.dumps({"a": text, "b": "short"}))
    assert json.loads(found.text) == {"a": text, "b": "short"}
    assert found.folds == [True, False]
    (_members, preview) = found.notes
    assert preview.startswith('"word 0 word 1')
    assert preview.endswith(f"… {len(text):,} characters")


def test_a_text_too_long_is_cut_and_says_how_much_is_missing():
    found = drawn(json.dumps("x" * 30_000))
    assert found.cuts == ["… 10,000 more characters are not shown"]
    assert found.text == '"' + "x" * 20_000 + found.cuts[0] + '"'


def test_a_long_list_is_cut_and_says_how_much_is_missing():
    found = drawn(json.dumps(list(range(1_000))))
    assert found.cuts == ["… 800 more elements are not shown"]
    assert "\n  199,\n" in found.text
    assert "\n  200," not in found.text
    assert drawn(json.dumps({str(number): 1 for number in range(201)})).cuts == ["… 1 more member is not shown"]


def test_what_stands_behind_a_long_list_is_shown_all_the_same():
    assert '"note": "kept"' in drawn(json.dumps({"items": list(range(10_000)), "note": "kept"})).text


LARGE = {
    "ten million letters": json.dumps("a" * 10_000_000),
    "many texts": json.dumps(["word " * 1_000] * 2_000),
    "many numbers": json.dumps(list(range(1_000_000))),
    "many members": json.dumps({f"name {number}": number for number in range(100_000)}),
    "many lists": json.dumps([[[1] * 300] * 300] * 20),
    "long names": json.dumps({"n" * 100_000 + str(number): 1 for number in range(50)}),
    "deep lists": "[" + ",".join([nested(99, begin="[", end="]")] * 300) + "]",
    "markup": json.dumps(['<b>"&' * 5_000] * 300),
    "what is spelled out": json.dumps(["\u202e\x00" * 9_000] * 30),
    "secrets": json.dumps([{"password": "x" * 100}] * 10_000),
}


@pytest.mark.parametrize("kind", LARGE)
def test_the_largest_payload_makes_a_page_that_can_be_borne(kind):
    page = tree_of(LARGE[kind])
    assert len(page) < 1_500_000
    assert Read(page).cuts
    assert all(cut.endswith("not shown") for cut in Read(page).cuts)


def test_the_values_of_a_tree_are_counted_together(monkeypatch):
    monkeypatch.setattr(json_tree, "VALUES_SHOWN", 5)
    assert drawn('{"a": [1, 2, 3, 4], "b": [5], "c": 6}').cuts == [
        "… 1 more element is not shown",
        "… 2 more members are not shown",
    ]


def test_a_tree_can_be_reached_by_keyboard_and_has_a_name():
    page = tree_of("{}")
    assert 'role="group" aria-label="Payload" tabindex="0"' in page
    assert '<button type="button"' in page
    assert 'aria-label="Copy: Payload"' in page
