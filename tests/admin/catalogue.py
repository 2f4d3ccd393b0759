"""The contents of a translation catalogue and the strings of the sources, read without the gettext tools."""

from __future__ import annotations

import ast
import re
from gettext import GNUTranslations
from pathlib import Path
from typing import NamedTuple

from django.utils.translation.template import templatize

PACKAGE = Path(__file__).resolve().parents[2] / "jobqueue"
#: By the name of a function, what its arguments are.
FUNCTIONS = {
    **dict.fromkeys(("gettext", "gettext_lazy", "gettext_noop", "_"), ("one",)),
    **dict.fromkeys(("ngettext", "ngettext_lazy"), ("one", "many")),
    **dict.fromkeys(("pgettext", "pgettext_lazy"), ("context", "one")),
    **dict.fromkeys(("npgettext", "npgettext_lazy"), ("context", "one", "many")),
}
_LITERAL = r"""u?(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")"""
_CALL = re.compile(rf"\b({'|'.join(FUNCTIONS)})\(({_LITERAL}(?:, {_LITERAL})*)")


class Text(NamedTuple):
    """What is to be translated; ``many`` is empty where there is no plural."""

    context: str
    one: str
    many: str = ""


class Entry(NamedTuple):
    """A text with its translations, and what the tools noted of it."""

    text: Text
    forms: tuple[str, ...]
    flags: frozenset[str]

    @property
    def pairs(self):
        """Each translation with what it stands for; the first form is the singular."""
        return [(self.text.one if place == 0 else self.text.many, form) for place, form in enumerate(self.forms)]


def place(language, kind):
    return PACKAGE / "locale" / language / "LC_MESSAGES" / f"django.{kind}"


def read(path):
    """Read a .po: its header, and its entries."""
    entries = [_entry(block) for block in path.read_text(encoding="utf-8").strip().split("\n\n")]
    return entries[0].forms[0], [one for one in entries[1:] if one]


def _entry(block):
    flags, values, keyword = set(), {}, ""
    for line in block.splitlines():
        if line.startswith("#"):
            flags |= set(line[2:].split(", ")) if line.startswith("#,") else set()
            continue
        name, quote, rest = line.partition('"')
        keyword = name.strip() or keyword
        values[keyword] = values.get(keyword, "") + ast.literal_eval(quote + rest)
    forms = tuple(value for name, value in values.items() if name.startswith("msgstr"))
    text = Text(values.get("msgctxt", ""), values.get("msgid", ""), values.get("msgid_plural", ""))
    return Entry(text, forms, frozenset(flag.strip() for flag in flags)) if values else None


def keys(entries):
    """What a .mo has of such entries."""
    found = {}
    for text, forms, _flags in entries:
        key = f"{text.context}\x04{text.one}" if text.context else text.one
        found |= {(key, place): form for place, form in enumerate(forms)} if text.many else {key: forms[0]}
    return found


def compiled(path):
    with path.open("rb") as file:
        return {key: form for key, form in GNUTranslations(file)._catalog.items() if key != ""}


# What the sources ask for


def asked():
    """Every text in the code and in the templates."""
    return {*_of_code(), *_of_templates()}


def _of_code():
    for path in PACKAGE.rglob("*.py"):
        for call in _calls(ast.parse(path.read_text(encoding="utf-8"))):
            given = [one.value for one in call.args if isinstance(one, ast.Constant) and isinstance(one.value, str)]
            if given:
                yield _text(call.func.id, given)


def _of_templates():
    for path in (PACKAGE / "templates").rglob("*.html"):
        for found in _CALL.finditer(templatize(path.read_text(encoding="utf-8"))):
            yield _text(found[1], [ast.literal_eval(one) for one in re.findall(_LITERAL, found[2])])


def _text(function, given):
    named = dict(zip(FUNCTIONS[function], given, strict=False))
    return Text(named.get("context", ""), named["one"], named.get("many", ""))


def _calls(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in FUNCTIONS:
            yield node


def out_of_reach():
    """Where the tools would not find a text: inside an f-string, or behind a name."""
    for path in PACKAGE.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        inside = [call for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for call in _calls(node)]
        behind = [call for call in _calls(tree) if not isinstance(call.args[0], ast.Constant)]
        yield from (f"{path.name}: {ast.unparse(call)}" for call in (*inside, *behind))
