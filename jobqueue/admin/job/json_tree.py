"""JSON as a collapsible tree: numbers as they are written, secrets redacted, and large values cut.

The text of the elements is JSON again, except for notes, which a copy leaves out, and for places where it was cut.
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
from jobqueue.observe.terminal_safe import spelled_out
from jobqueue.policy.redaction import REDACTED, Numeral, redact_beginning, unfolded

#: The limits of one object or array, of the whole tree, and of its texts together.
MEMBERS_SHOWN = 200
VALUES_SHOWN = 2_000
LETTERS_SHOWN = 100_000
#: The limits of one text and of one name, and the length from which a text is collapsed.
TEXT_SHOWN = 20_000
NAME_SHOWN = 200
FOLDED_FROM = 300
#: How many levels are shown, and how many of them expanded.
DEPTH_SHOWN = 100
DEPTH_OPEN = 2
_PREVIEW = 80

_WORDS = {True: "true", False: "false", None: "null"}
_FOLDED = "<details><summary>{}{}{}</summary>{}\n{}{}{}</details>"
_OPEN = _FOLDED.replace("<details>", "<details open>")
_HALF = re.compile(r"\\u?[0-9a-f]{0,3}\Z")


def read(text: str) -> Any:
    """Decode JSON, with numbers as they are written."""
    return foreign_json.read(text, Numeral)


def tree(value: Any, label: str) -> SafeString:
    """Render a value that ``read`` decoded; ``label`` names it for screen readers."""
    if isinstance(value, Unreadable):
        words = gettext("This value can't be shown, because it is nested too deeply or is not JSON.")
        return format_html('<p class="jq-quiet">{}</p>', words)
    return format_html(
        '<div class="jq-json"><p class="jq-json-tools"><button type="button" class="jq-copy" data-jq-copy '
        'data-done="{}" data-selected="{}" aria-label="{}">{}</button> <span class="jq-quiet" role="status"></span></p>'
        '<div class="jq-tree" role="group" aria-label="{}" tabindex="0" dir="ltr" translate="no">{}</div></div>',
        gettext("Copied."),
        gettext("Selected. Press Ctrl+C or ⌘C to copy."),
        gettext("Copy: %(what)s") % {"what": label},
        gettext("Copy"),
        label,
        _Drawing().of(value),
    )


class _Drawing:
    """The rendering of one tree, with the limits that are left."""

    def __init__(self) -> None:
        self._values = VALUES_SHOWN
        self._letters = LETTERS_SHOWN

    def of(self, value: Any, depth: int = 0, name: str = "", comma: str = "") -> SafeString:
        """Render a value, its name before it and a comma after it."""
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
        # A list, not a generator: a hundred nested generators would exceed Python's recursion limit.
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
        """Render as much of a redacted text as there is room for; return it with the number of characters left out."""
        clean, is_all = redact_beginning(value, room)
        shown = _spelled(clean)
        self._letters -= len(shown)
        return shown, 0 if is_all else max(len(value) - len(clean), 1)


def _spelled(text: str) -> str:
    """Write a text as JSON, with characters escaped that a page can't show, such as NUL or a lone surrogate."""
    return spelled_out(json.dumps(text, ensure_ascii=False)).encode(errors="backslashreplace").decode()


def _without_half(spelled: str) -> str:
    """Remove an escape sequence that was cut in two."""
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
