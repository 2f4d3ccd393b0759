"""The headers that continue a trace, such as ``traceparent``, in the column ``context`` of a job."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping

from jobqueue import foreign_json

#: The most characters of one header, as for ``baggage`` in HTTP.
LONGEST = 8_192
_VALID = re.compile(rf"[ -~]{{1,{LONGEST}}}")
#: The most characters of a context that is stored again with a retry.
LONGEST_CONTEXT = 32_768
#: The key of the last attempt's span, to which the next attempt has a link.
LAST_ATTEMPT = "last_attempt"
_BAGGAGE = "baggage"
_OF_SENTRY = "sentry-"


def of_context(context: str | None) -> dict[str, str]:
    """Read the headers of a job. What other programs stored may be anything, so unusual values are left out."""
    found = foreign_json.read(context) if context else None
    return valid(found) if isinstance(found, dict) else {}


def valid(found: Mapping[str, object]) -> dict[str, str]:
    """Return the values that can be headers: printable ASCII of limited length."""
    return {name: value for name, value in found.items() if isinstance(value, str) and _VALID.fullmatch(value)}


def joined(several: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """Return the headers of several libraries together. They share the header ``baggage``."""
    found: dict[str, str] = {}
    for headers in several:
        for name, value in valid(headers).items():
            found[name] = _both(found[name], value) if name == _BAGGAGE and name in found else value
    return found


def _both(first: str, second: str) -> str:
    """Join two values of ``baggage``. Of Sentry's own entries, only those of the second, newer value are kept."""
    kept = [one for one in first.split(",") if not one.strip().startswith(_OF_SENTRY)]
    whole = ",".join([*kept, second])
    return whole if len(whole) <= LONGEST else second


def within(context: str | None, headers: Mapping[str, str]) -> str | None:
    """Return the context of a job with headers."""
    found = foreign_json.read(context) if context else {}
    if not headers or not isinstance(found, dict):
        return context
    return json.dumps({**found, **headers})
