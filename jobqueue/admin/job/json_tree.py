"""JSON as a tree that folds: each number as it is written, no secret, and never more of it than a page can bear.

What the elements say one after another is JSON again, but for the notes, which a copy leaves out, and for the places
where something is not shown, which say so.
"""

from __future__ import annotations

import json
import re
from itertools import islice
from typing import Any

from django.utils.formats import number_format
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext, ngettext

from jobqueue import foreign_json
from jobqueue.foreign_json import Unreadable
from jobqueue.observe.steering import spelled_out
from jobqueue.policy.redaction import REDACTED, Numeral, redact_beginning, unfolded

#: Shown of one object or array, of the whole tree, and of its texts together.
MEMBERS_SHOWN = 200
VALUES_SHOWN = 2_000
LETTERS_SHOWN = 100_000
#: Shown of one text, and of one name; longer texts than the third are folded.
TEXT_SHOWN = 20_000
NAME_SHOWN = 200
FOLDED_FROM = 300
#: So many levels are shown, and so many of them unfolded.
DEPTH_SHOWN = 100
DEPTH_OPEN = 2
_PREVIEW = 80

_WORDS = {True: "true", False: "false", None: "null"}
_FOLDED = "<details><summary>{}{}{}</summary>{}\n{}{}{}</details>"
_OPEN = _FOLDED.replace("<details>", "<details open>")
_HALF = re.compile(r"\\u?[0-9a-f]{0,3}\Z")


def read(text: str) -> Any:
    """Decode JSON with each number as it is written."""
    return foreign_json.read(text, Numeral)


def tree(value: Any, label: str) -> SafeString:
    """Show a value that ``read`` has decoded; ``label`` says what it is to those who do not see where it stands."""
    if isinstance(value, Unreadable):
        words = gettext("It cannot be read: it is nested too deeply to be shown, or is no JSON.")
        return format_html('<p class="jq-quiet">{}</p>', words)
    return format_html(
        '<div class="jq-json"><p class="jq-json-tools"><button type="button" class="jq-copy" data-jq-copy '
        'data-done="{}" data-selected="{}" aria-label="{}">{}</button> <span class="jq-quiet" role="status"></span></p>'
        '<div class="jq-tree" role="group" aria-label="{}" tabindex="0" dir="ltr" translate="no">{}</div></div>',
        gettext("Copied."),
        gettext("It is selected: copy it with Ctrl+C or ⌘C."),
        gettext("Copy: %(what)s") % {"what": label},
        gettext("Copy"),
        label,
        _Drawing().of(value),
    )


class _Drawing:
    """One tree while it is drawn, and what may still be shown."""

    def __init__(self) -> None:
        self._values = VALUES_SHOWN
        self._letters = LETTERS_SHOWN

    def of(self, value: Any, depth: int = 0, name: str = "", comma: str = "") -> SafeString:
        """Draw a value with its name before it and its comma behind it."""
        self._values -= 1
        if isinstance(value, (dict, list)) and value:
            return self._container(value, depth, name, comma)
        return format_html("{}{}{}", name, self._scalar(value), comma)

    def _container(self, value: dict[str, Any] | list[Any], depth: int, name: str, comma: str) -> SafeString:
        begin, end = "{}" if isinstance(value, dict) else "[]"
        if depth >= DEPTH_SHOWN:
            cut = _cut(gettext("… deeper levels are not shown"))
            return format_html("{}{}{}{}{}", name, begin, cut, end, comma)
        members = self._members(value, depth)
        return format_html(
            _OPEN if depth < DEPTH_OPEN else _FOLDED,
            name,
            begin,
            _note(f"…{end} {_counted(value)}"),
            format_html_join("", '<div class="jq-json-member">{}</div>', ((one,) for one in members)),
            "  " * depth,
            end,
            comma,
        )

    def _members(self, value: dict[str, Any] | list[Any], depth: int) -> list[SafeString]:
        # A list, and no generator: a hundred levels of those would use up Python's stack.
        shown: list[SafeString] = []
        indent = "\n" + "  " * (depth + 1)
        for key, inner in islice(unfolded(value), MEMBERS_SHOWN):
            if self._values <= 0 or self._letters <= 0:
                break
            name = self._name(key) if isinstance(value, dict) else ""
            comma = "," if len(shown) + 1 < len(value) else ""
            shown.append(format_html("{}{}", indent, self.of(inner, depth + 1, name, comma)))
        if left := len(value) - len(shown):
            shown.append(format_html("{}{}", indent, _cut(_left(value, left))))
        return shown

    def _name(self, key: str) -> SafeString:
        shown, left = self._of_text(key, NAME_SHOWN)
        if not left:
            return format_html('<span class="jq-json-key">{}</span>: ', shown)
        return format_html('<span class="jq-json-key">{}{}"</span>: ', shown[:-1], _cut(_more_letters(left)))

    def _scalar(self, value: Any) -> SafeString:
        match value:
            case Numeral():
                return self._number(value)
            case str():
                return self._text(value)
            case dict() | list():
                return format_html("{}", "{}" if isinstance(value, dict) else "[]")
        return format_html('<span class="jq-json-word">{}</span>', _WORDS[value])

    def _number(self, value: str) -> SafeString:
        shown, left = value[:TEXT_SHOWN], len(value) - TEXT_SHOWN
        self._letters -= len(shown)
        cut = _cut(_more_letters(left)) if left > 0 else ""
        return format_html('<span class="jq-json-number">{}{}</span>', shown, cut)

    def _text(self, value: str) -> SafeString:
        if value == REDACTED:
            return format_html('<span class="jq-json-secret">{}</span>', _spelled(value))
        shown, left = self._of_text(value, max(min(TEXT_SHOWN, self._letters), _PREVIEW))
        if left:
            text = format_html('<span class="jq-json-string">{}{}"</span>', shown[:-1], _cut(_more_letters(left)))
        else:
            text = format_html('<span class="jq-json-string">{}</span>', shown)
        if len(shown) <= FOLDED_FROM:
            return text
        preview = f"{_without_half(shown[:_PREVIEW])}… {_letters(len(value))}"
        return format_html('<details class="jq-json-long"><summary>{}</summary>{}</details>', _note(preview), text)

    def _of_text(self, value: str, room: int) -> tuple[str, int]:
        """Spell as much of a text as there is room for, without secrets; say how much of it is left."""
        clean, is_all = redact_beginning(value, room)
        shown = _spelled(clean)
        self._letters -= len(shown)
        return shown, 0 if is_all else max(len(value) - len(clean), 1)


def _spelled(text: str) -> str:
    """Write a text as JSON does, and all that no page can hold or show (NUL, half a pair, turned writing) in digits."""
    return spelled_out(json.dumps(text, ensure_ascii=False)).encode(errors="backslashreplace").decode()


def _without_half(spelled: str) -> str:
    """Take off what is left of an escape that was cut in two."""
    return _HALF.sub("", spelled)


def _note(words: str) -> SafeString:
    return format_html('<span class="jq-json-note">{}</span>', words)


def _cut(words: str) -> SafeString:
    return format_html('<span class="jq-json-cut">{}</span>', words)


def _counted(value: dict[str, Any] | list[Any]) -> str:
    if isinstance(value, dict):
        return ngettext("%(count)s member", "%(count)s members", len(value)) % _count(len(value))
    return ngettext("%(count)s element", "%(count)s elements", len(value)) % _count(len(value))


def _left(value: dict[str, Any] | list[Any], left: int) -> str:
    if isinstance(value, dict):
        text = ngettext("… %(count)s more member is not shown", "… %(count)s more members are not shown", left)
    else:
        text = ngettext("… %(count)s more element is not shown", "… %(count)s more elements are not shown", left)
    return text % _count(left)


def _letters(count: int) -> str:
    return ngettext("%(count)s character", "%(count)s characters", count) % _count(count)


def _more_letters(count: int) -> str:
    text = ngettext("… %(count)s more character is not shown", "… %(count)s more characters are not shown", count)
    return text % _count(count)


def _count(count: int) -> dict[str, str]:
    return {"count": number_format(count, force_grouping=True)}
