"""The query language of the search box, read as a filter. ``spelling`` writes a filter as a query.

Words are separated by spaces, and a job must match all of them. ``name:value`` matches one value, ``name:a,b`` one of
several, and ``-name:value`` all jobs but those. Quotes keep spaces and commas together; within them, a backslash
escapes a quote. ``bare_word`` decides what a word without a name means.
"""

from __future__ import annotations

from difflib import get_close_matches

from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from jobqueue.admin.search import bare_word
from jobqueue.admin.search.combine import BadQuery, both
from jobqueue.admin.search.qualifiers import QUALIFIERS, incomplete, read_status
from jobqueue.admin.search.spelling import spelled
from jobqueue.admin.search.tokens import parted, plain, words
from jobqueue.records import Filter

__all__ = ["HELP", "QUALIFIERS", "BadQuery", "check", "parse", "read_status", "spelled"]

#: The limits of a query, more than anybody types.
LONGEST = 2_000
MOST_WORDS = 30
#: To exclude these would reveal hidden values.
_NOT_EXCLUDED = ("error", "payload")

HELP = (
    *((one.example, one.about) for one in QUALIFIERS.values()),
    ("-type:nap", _("All jobs but those of this type.")),
)


def parse(text: str) -> Filter:
    """Read a query. Raises BadQuery."""
    check(text)
    typed = words(text)
    if typed is None:
        raise BadQuery(gettext("A closing quotation mark is missing."))
    if len(typed) > MOST_WORDS:
        raise BadQuery(gettext("Use at most %(count)d words.") % {"count": MOST_WORDS})
    wanted = Filter()
    for word in dict.fromkeys(typed):
        wanted = both(wanted, _read(word))
    return wanted


def check(text: str) -> None:
    """Reject texts that are too long, or that no database accepts."""
    if len(text) > LONGEST:
        raise BadQuery(gettext("Use at most %(count)d characters.") % {"count": LONGEST})
    if "\0" in text or any("\ud800" <= letter <= "\udfff" for letter in text):
        raise BadQuery(gettext("The search contains a character that cannot occur in a job."))


def _read(word: str) -> Filter:
    found = parted(word)
    if found is None:
        return bare_word.meant(plain(word).text)
    typed_name, value = found
    name, *rest = typed_name.split(".", 1)
    path = "".join(rest)
    bare_name = name.lower().removeprefix("-")
    qualifier = QUALIFIERS.get(bare_name)
    if qualifier is None or (path and qualifier is not QUALIFIERS["payload"]):
        # Ids and keys may have colons, too.
        if named := bare_word.named(plain(word).text):
            return named
        raise BadQuery(_unknown(f"{typed_name}:"))
    if not value:
        raise BadQuery(incomplete(f"{typed_name}:", qualifier.example))
    read = qualifier.read(path, value)
    return read if bare_name == name.lower() else _all_but(read, bare_name)


def _all_but(excluded: Filter, name: str) -> Filter:
    if name in _NOT_EXCLUDED:
        said = gettext("“-%(name)s” isn't possible: the jobs that it leaves out would reveal hidden values.")
        raise BadQuery(said % {"name": name})
    return Filter(excluded=(excluded,))


def _unknown(name: str) -> str:
    said = gettext("There is no “%(name)s”.") % {"name": name}
    nearest = get_close_matches(name.lower(), [f"{one}:" for one in QUALIFIERS], n=1, cutoff=0.6)
    if nearest:
        nearest_is = gettext("Did you mean “%(name)s”?")
        return f"{said} {nearest_is % {'name': nearest[0]}}"
    there_is = gettext("Possible names are %(names)s. Put a word that contains a colon in quotes.")
    return f"{said} {there_is % {'names': ', '.join(f'{one}:' for one in QUALIFIERS)}}"
