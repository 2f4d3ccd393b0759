"""The redaction of secrets in displayed data and texts. Stored data is unchanged."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

REDACTED = "[redacted]"
SHORTEST_SECRET = 4
#: How much text beyond the cut is scanned. No secret that begins before the cut is longer.
_MARGIN = 4_000
#: The most passes over a text. Three were always enough; the limit keeps any text from causing endless ones.
_MOST_PASSES = 5

_SECRET_WORD = re.compile(
    r"\w*(?:password|passwd|passphrase|secret|token|apikey|privatekey|accesskey|secretkey|sessionkey|cookie)s?"
    r"|passcode|pwd|authorization|credentials?|jwt|otp"
)
_KEY_TO = "api|private|access|secret|signing|encryption|ssh|master|session|account|auth|shared|deploy"
_SECRET_KEY = re.compile(rf"(?:^|.* )(?:{_KEY_TO}) keys?(?: .*|$)")
# Names, counts and dates of secrets aren't secrets: private_key_ref, token_id, password_changed_at.
_REFERENCE = re.compile(
    r"refs?|references?|ids?|names?|counts?|types?|kind|length|len|size|at|until|expires|expiry|ttl|age"
    r"|url|uri|path|file|version|hint|policy|limit|status|state|valid|required|enabled|arn|field"
)
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_LONGEST_NAME = 200

# Every pattern below moves past what it has matched or scans a bounded length, so no text takes quadratic time.
_ASSIGNMENT = re.compile(
    r"(?P<name>(?:pass(?:word|wd|phrase|code)|pwd|secret|token|authorization|cookie|credential|jwt|otp"
    rf"|(?:{_KEY_TO})[_-]?key)[\w-]{{0,40}}+)"
    r"\\{0,7}[\"']?\s{0,4}+(?:=>|[:=])\s{0,4}+",
    re.IGNORECASE,
)
_VALUE = re.compile(
    r"\\{1,7}[\"'](?P<nested>[^\"'\r\n\\]*+(?:\\+[^\"'\r\n\\]+)*+)(?:\\*[\"'])?"
    r"|[bru]{0,2}\"(?P<double>(?:[^\"\\]|\\.)*+)\"?"
    r"|[bru]{0,2}'(?P<single>(?:[^'\\]|\\.)*+)'?"
    r"|(?P<bare>[^\s&;,\"'\\]+)",
    re.IGNORECASE | re.DOTALL,
)
_HEADER_VALUE = re.compile(_VALUE.pattern.rpartition("|")[0] + r"|(?P<bare>[^\r\n\"'\\]+)", _VALUE.flags)
_WHOLE_LINE_NAMES = ("authorization", "cookie")
_FLAG = re.compile(
    r"(?:^|(?<=[\s\"'\[]))--(?P<name>[\w-]{1,60}+)(?:[\"'],\s{0,3}[\"']|\s{1,3})(?P<value>(?!-)[^\s\"']+)"
)
_SAYS_NOTHING = frozenset(("", "none", "null", "true", "false", REDACTED))

_USER_AND_PASSWORD = re.compile(r"(://[^\s/:@\"']*+:)[^\s/\"']+(?=@)")
_PEM = re.compile(
    r"-----BEGIN (?P<kind>[A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?)-----.*?(?:-----END [A-Z0-9 ]{0,60}-----|\Z)", re.DOTALL
)
_SCHEME = re.compile(r"\b(?P<scheme>Bearer|Basic(?=\s{1,4}[a-z0-9+/_-]*+[0-9=+/]))\s{1,4}[\w.~+/=-]{8,}", re.IGNORECASE)
_TOKENS = re.compile(
    r"(?:(?<![\w-])|(?<=\\[nrt]))(?:"
    r"A(?:KIA|SIA)[A-Z0-9]{16}(?![A-Za-z0-9])"
    r"|gh[opsur]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}"
    r"|[rs]k_(?:live|test)_[A-Za-z0-9]{8,}|whsec_[\w+/=]{8,}|sk-[\w-]{20,}"
    r"|xox[a-z]-[\w-]{8,}|xapp-[\w-]{8,}"
    r"|AIza[\w-]{30,}|ya29\.[\w-]{16,}|SG\.[\w-]{16,64}\.[\w-]{16,}|npm_[A-Za-z0-9]{30,}|pypi-[\w-]{40,}"
    r"|eyJ[\w-]{8,}+\.[\w-]{4,}+\.[\w-]*+"
    r")"
)
_WEBHOOK = re.compile(r"(hooks\.slack\.com/(?:services|workflows)/)[\w/-]+")


class Numeral(str):
    """A number in its original spelling, for readers who want each digit. Redaction treats it as a number."""

    __slots__ = ()


def redact_data(value: Any) -> Any:
    """Return a copy of a JSON value without its secrets, at any depth."""
    whole: list[Any] = [None]
    pending: list[tuple[Any, Any, Any]] = [(whole, 0, value)]
    while pending:
        target, place, item = pending.pop()
        if isinstance(item, Mapping):
            target[place] = copy = dict.fromkeys(item)
            pending.extend((copy, key, _shown(secret, inner)) for key, inner, secret in _members(item))
        elif isinstance(item, (list, tuple)):
            target[place] = items = [None] * len(item)
            pending.extend((items, index, _shown(secret, inner)) for index, inner, secret in _elements(item))
        else:
            target[place] = redact_text(item) if _is_text(item) else item
    return whole[0]


def unfolded(value: Mapping[Any, Any] | list[Any]) -> Iterator[tuple[Any, Any]]:
    """Return the members of an object or the elements of an array, with secrets redacted at this level only."""
    found = _members(value) if isinstance(value, Mapping) else _elements(value)
    return ((key, _shown(secret, inner)) for key, inner, secret in found)


def hides(value: Any, path: Iterable[str]) -> bool:
    """Return whether ``redact_data`` would hide the value at a path of keys and indexes."""
    for name in path:
        if isinstance(value, Mapping):
            found = {key: (inner, secret) for key, inner, secret in _members(value)}.get(name)
        elif isinstance(value, (list, tuple)) and name.isdecimal():
            found = {place: (inner, secret) for place, inner, secret in _elements(value)}.get(int(name[-9:]))
        else:
            found = None
        if found is None:
            return False
        value, secret = found
        if secret:
            return True
    return _is_text(value) and redact_text(value) != value


def redact_text(text: str, secrets: Iterable[str] = ()) -> str:
    """Return the text without secrets of known shapes, and without the given ones."""
    text = _without(text, _spellings(secrets))
    for _ in range(_MOST_PASSES):
        before, text = text, _without_shapes(text)
        if text == before:
            break
    return text


def _without(text: str, spellings: Sequence[str]) -> str:
    return re.compile("|".join(map(re.escape, spellings))).sub(REDACTED, text) if spellings else text


def _without_half(text: str, spellings: Sequence[str]) -> str:
    """Return the text without a secret that is cut off at its end."""
    end = len(text)
    for secret in spellings:
        at = text.find(secret[0], max(0, len(text) - len(secret) + 1))
        while 0 <= at < end:
            if secret.startswith(text[at:]):
                end = at
            at = text.find(secret[0], at + 1)
    return text[:end]


def _without_shapes(text: str) -> str:
    """Return the text without secrets of known shapes. The result may contain new matches."""
    if "-----BEGIN " in text:
        text = _PEM.sub(rf"-----BEGIN \g<kind>-----{REDACTED}-----END \g<kind>-----", text)
    text = _without_assignments(text)
    if "--" in text:
        text = _FLAG.sub(_without_flag, text)
    if "://" in text:
        text = _WEBHOOK.sub(rf"\1{REDACTED}", _USER_AND_PASSWORD.sub(rf"\1{REDACTED}", text))
    text = _SCHEME.sub(rf"\g<scheme> {REDACTED}", text)
    return _TOKENS.sub(REDACTED, text)


def redact_beginning(text: str, length: int, secrets: Iterable[str] = ()) -> tuple[str, bool]:
    """Return the redacted beginning of a text, and whether it is the whole text. No secret is cut in two.

    The cost depends on the given length and the lengths of the secrets, but not on the length of the text.
    """
    if len(text) <= length + _MARGIN:
        clean = redact_text(text, secrets)
        return clean[:length], len(clean) <= length
    known = _spellings(secrets)
    begun = _without(text[: length + max(_MARGIN, *map(len, known), 0)], known)
    clean = redact_text(_without_half(begun, known)[: length + _MARGIN])
    # The scanned part may end with half a secret, but a secret never reaches back before the last redaction.
    untouched = len(clean) - (clean.rfind(REDACTED) + len(REDACTED) if REDACTED in clean else 0)
    return clean[: min(length, len(clean) - min(untouched, _MARGIN))], False


def redact_end(text: str, length: int, secrets: Iterable[str] = ()) -> tuple[str, bool]:
    """Return the redacted end of a text, like ``redact_beginning``."""
    looked_at = text[-length - _MARGIN :]
    clean = redact_text(looked_at, secrets)
    if len(looked_at) < len(text):
        return clean[max(_MARGIN, len(clean) - length) :], False
    return clean[max(0, len(clean) - length) :], len(clean) <= length


def secret_values(value: Any) -> tuple[str, ...]:
    """Return the strings under secret names in a JSON value, each once."""
    found: dict[str, None] = {}
    pending: list[tuple[Any, bool]] = [(value, False)]
    while pending:
        item, is_secret = pending.pop()
        if isinstance(item, Mapping):
            pending.extend((inner, is_secret or secret) for _, inner, secret in _members(item))
        elif isinstance(item, (list, tuple)):
            pending.extend((inner, is_secret or secret) for _, inner, secret in _elements(item))
        elif is_secret and _is_text(item) and len(item) >= SHORTEST_SECRET:
            found[item] = None
    return tuple(found)


@lru_cache(maxsize=2048)
def is_secret_name(name: str) -> bool:
    """Return whether a name stands for a secret rather than for a reference to one."""
    words = [word.lower() for word in _WORD.findall(name[-_LONGEST_NAME:])]
    while words and words[-1].isdigit():
        words.pop()
    if not words or _REFERENCE.fullmatch(words[-1]):
        return False
    return words == ["auth"] or any(map(_SECRET_WORD.fullmatch, words)) or bool(_SECRET_KEY.match(" ".join(words)))


def _members(item: Mapping[Any, Any]) -> Iterator[tuple[Any, Any, bool]]:
    named = item.get("name", item.get("key"))  # {"name": "API_KEY", "value": "..."}, as in lists of variables
    for key, inner in item.items():
        secret = isinstance(key, str) and _is_secret(key, inner)
        yield key, inner, secret or (key == "value" and isinstance(named, str) and _is_secret(named, inner))


def _elements(items: list[Any] | tuple[Any, ...]) -> Iterator[tuple[int, Any, bool]]:
    flag = ""
    for index, inner in enumerate(items):
        yield index, inner, bool(flag) and _is_secret(flag, inner)
        flag = inner.lstrip("-") if isinstance(inner, str) and inner.startswith("-") else ""


def _is_secret(name: str, value: Any) -> bool:
    if value is None or isinstance(value, bool):
        return False
    if isinstance(value, (int, float, Numeral)) and name.lower().endswith("tokens"):
        return False  # max_tokens=1024 is a number of tokens
    return is_secret_name(name)


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and not isinstance(value, Numeral)


def _shown(secret: bool, value: Any) -> Any:
    return REDACTED if secret else value


def _spellings(secrets: Iterable[str]) -> list[str]:
    known = {secret for secret in secrets if len(secret) >= SHORTEST_SECRET}
    known |= {repr(secret)[1:-1] for secret in known} | {json.dumps(secret)[1:-1] for secret in known}
    return sorted(known, key=lambda secret: (-len(secret), secret))


def _without_assignments(text: str) -> str:
    parts, done, at = [], 0, 0
    while found := _ASSIGNMENT.search(text, at):
        at = found.end()
        value = _value_pattern(found["name"]).match(text, at)
        if value and _is_worth_hiding(found["name"], value):
            start, at = value.span(value.lastgroup or 0)
            parts += [text[done:start], REDACTED]
            done = at
    return "".join([*parts, text[done:]]) if parts else text


def _value_pattern(name: str) -> re.Pattern[str]:
    return _HEADER_VALUE if name.lower().endswith(_WHOLE_LINE_NAMES) else _VALUE


def _is_worth_hiding(name: str, value: re.Match[str]) -> bool:
    content = value[value.lastgroup or 0].rstrip(")}>").lower()
    is_count = name.lower().endswith("tokens") and content.rstrip("])").isdigit()
    return content not in _SAYS_NOTHING and not is_count and is_secret_name(name)


def _without_flag(found: re.Match[str]) -> str:
    if not is_secret_name(found["name"]):
        return found[0]
    return found[0].removesuffix(found["value"]) + REDACTED
