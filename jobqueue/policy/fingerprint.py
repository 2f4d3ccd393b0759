"""The rule that groups failures: by job type, error class, the line that raised, and the message without its values.

The rule reads texts as they are stored, so that stored failures can be grouped again when it changes.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import replace
from typing import NamedTuple

from jobqueue.records.outcome import Ending, Failure

#: How much of a line and of a message's pattern counts.
LINE_LIMIT = 200
PATTERN_LIMIT = 200
#: Stands for a number or an id, and for a quoted part.
_NUMBER, _QUOTED = "#", "“…”"

# No match passes a place where another one could begin, so no text takes quadratic time.
_QUOTES = re.compile(
    # An apostrophe within a word neither begins nor ends a quotation.
    r"(?<!\w)[bru]?(?:'(?:[^'\n]|(?<=\w)(?<!\W[bru])'(?=\w))*+'(?!\w)|\"[^\"\n]*+\"|`[^`\n]*+`)"
    r"|“[^“”\n]*+”|\u2018[^\u2018\u2019\n]*+\u2019|«[^«»\n]*+»"
)
_EMAIL = re.compile(r"(?<![\w.+-])[\w.+-]++@[\w-][\w.-]*+")
_ID = re.compile(r"(?<![\w-])[\w-]*?\d[\w-]*+")
_REPEATED = re.compile(r"(#|“…”)(?:[^\w#“]{1,3}+\1)++")
_FRAME = re.compile(r'  File "(?P<file>[^"]*+)", line \d+(?:, in (?P<function>.*))?')
_LINK = "\nThis led to another error:\n\n"


class Grouping(NamedTuple):
    """What a failure is grouped by. ``line`` and ``pattern`` may be empty."""

    job_type: str
    #: The class of the error, or how the attempt ended if there was none.
    error: str
    line: str
    pattern: str

    @property
    def fingerprint(self) -> str:
        """Return the hash that failures of one group share."""
        return hashlib.sha256("\0".join(self).encode("utf-8", "replace")).hexdigest()[:32]


def grouping(job_type: str, failure: Failure) -> Grouping:
    """Return what a failure is grouped by."""
    # Where an attempt is when its time is up is chance, and the message of a lost lease names its worker.
    line = "" if failure.ending is Ending.TIMED_OUT else raising_line(failure.traceback)
    words = "" if failure.ending is Ending.LEASE_LOST else pattern(failure.message)
    return Grouping(job_type, failure.error_class or failure.ending.value, line, words)


def with_fingerprint(job_type: str, failure: Failure) -> Failure:
    """Return the failure with its fingerprint."""
    return replace(failure, fingerprint=grouping(job_type, failure).fingerprint)


def pattern(message: str) -> str:
    """Return a message without numbers, ids, addresses and quoted parts, on one line."""
    text = _QUOTES.sub(_QUOTED, message)
    text = _ID.sub(_NUMBER, _EMAIL.sub(_NUMBER, text))
    return _REPEATED.sub(r"\1", " ".join(text.split()))[:PATTERN_LIMIT]


def raising_line(traceback: str) -> str:
    """Return the code of the line that raised, or its file and function if the traceback has no code.

    Of a chain of errors, the last one counts.
    """
    frame, code, is_fresh = None, "", False
    for text in traceback.rpartition(_LINK)[2].split("\n"):
        found = _FRAME.fullmatch(text)
        if found:
            frame, code, is_fresh = found, "", True
        elif is_fresh and text.startswith("    "):
            code, is_fresh = text.strip(), False
        elif frame and not text.startswith(" "):
            break  # the error itself, whose message may look like a frame
    if frame is None:
        return ""
    file = frame["file"].replace("\\", "/").rpartition("/")[2]
    return (code or f"{file}:{frame['function'] or ''}")[:LINE_LIMIT]
