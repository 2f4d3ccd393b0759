"""Private data of known shapes, taken out of a text before anything stores it. Pure: text in, text and findings out.

Each pattern moves past what it has looked at, or looks at a bounded stretch, so that no text makes one quadratic. What
needs more than a shape, a check digit or the range of a number, is judged by a function.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from dataclasses import dataclass, field

#: Stored with each message, so that it is known which rules it has seen.
VERSION = "1"


@dataclass(frozen=True, slots=True)
class Finding:
    """One stretch of private data. ``original`` is for hashing and judging; nobody stores it."""

    category: str
    replacement: str
    original: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Sanitised:
    """A text that may be stored, and what was taken out of it."""

    text: str
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class Rule:
    """A category and its shape. The group ``private`` is what goes, or all of it where the shape has no such group.

    No text has the shape that has none of its ``signs``, and it takes a pattern a hundred times as long to find out.
    """

    category: str
    pattern: re.Pattern[str]
    is_private: Callable[[str], bool] = bool
    signs: tuple[str, ...] = ("",)

    @property
    def replacement(self) -> str:
        """What stands in its place."""
        return f"[{self.category.upper()}]"


def sanitise(text: str) -> Sanitised:
    """Take out what any rule finds, one rule after the other."""
    findings: list[Finding] = []
    for rule in RULES:
        if any(sign in text for sign in rule.signs):
            text = _apply(rule, text, findings)
    return Sanitised(text, tuple(findings))


def _apply(rule: Rule, text: str, findings: list[Finding]) -> str:
    group = "private" if "private" in rule.pattern.groupindex else 0

    def replaced(match: re.Match[str]) -> str:
        private: str | None = match[group]
        if private is None or not rule.is_private(private):
            return match[0]
        findings.append(Finding(rule.category, rule.replacement, private))
        start, end = (place - match.start() for place in match.span(group))
        return match[0][:start] + rule.replacement + match[0][end:]

    return rule.pattern.sub(replaced, text)


# What a shape alone does not tell


def _is_card(text: str) -> bool:
    """Whether a number has the length and the beginning of a payment card's, and its check digit."""
    digits = [int(digit) for digit in text if digit.isdecimal()]
    doubled = [sum(divmod(2 * digit, 10)) for digit in digits[-2::-2]]
    return digits[0] in (2, 3, 4, 5, 6) and len(set(digits)) > 1 and (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0


def _is_address(text: str) -> bool:
    """Whether it is an IP address that tells of somebody; every machine calls itself 127.0.0.1."""
    try:
        found = ipaddress.ip_address(text)
    except ValueError:
        return False
    return not (found.is_loopback or found.is_unspecified) and (found.version == 4 or any(map(str.isdecimal, text)))


def _is_phone(text: str) -> bool:
    """Whether a number has as many digits as telephones have, and is neither a date nor an amount."""
    digits = list(filter(str.isdecimal, text))
    count = len(digits)
    if text.startswith("+"):
        return 8 <= count <= 15
    if len(set(digits)) <= 2:
        return False
    return _NORTH_AMERICAN.fullmatch(text) is not None or (text.startswith(("0", "(0")) and 9 <= count <= 14)


def _is_left(text: str) -> bool:
    """Whether no other rule has taken it out."""
    return not text.startswith("[")


def _is_home(name: str) -> bool:
    return name not in {"Shared", "Public", "Default", "linuxbrew"}


def _says_something(text: str) -> bool:
    """Whether what is assigned may be a secret: no placeholder, no name of a variable, and not too short."""
    return len(text) >= 6 and not _PLACEHOLDER.fullmatch(text)


_NORTH_AMERICAN = re.compile(r"(?:1[ .-])?(?:\([2-9][0-9]{2}\) ?|[2-9][0-9]{2}[ .-])[2-9][0-9]{2}[ .-][0-9]{4}")
_PLACEHOLDER = re.compile(
    r"[<\[{].*|\$(?:[{(].*|\w+)|%(?:[({].*|\w+%?)|\*+|\.+|x[x*-]*|[a-z_.]+[(\[].*"
    r"|(?:none|null|true|false|undefined|changeme|example|required|optional|string)"
    r"|(?:os|process|self|settings|config|env|request)\..*|your[_-].*",
    re.IGNORECASE | re.DOTALL,
)

# The rules. What holds others inside comes first: a key may look as if it held a telephone number.

_PRIVATE_KEY = re.compile(
    r"-----BEGIN [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----.*?(?:-----END [A-Z0-9 ]{0,40}-----|\Z)", re.DOTALL
)
_TOKEN = re.compile(
    r"(?<![A-Za-z0-9_-])(?:"
    r"sk-(?:ant-|proj-)?[A-Za-z0-9_-]{16,}+"  # Anthropic, OpenAI
    r"|gh[opsur]_[A-Za-z0-9]{20,}+|github_pat_[A-Za-z0-9_]{20,}+|glpat-[A-Za-z0-9_-]{16,}+"
    r"|A(?:KIA|SIA)[A-Z0-9]{16}(?![A-Za-z0-9])"
    r"|xox[abeoprs]-[A-Za-z0-9-]{10,}+|[rs]k_(?:live|test)_[A-Za-z0-9]{10,}+|whsec_[A-Za-z0-9+/=]{10,}+"
    r"|AIza[A-Za-z0-9_-]{30,}+|ya29\.[A-Za-z0-9_-]{16,}+|SG\.[A-Za-z0-9_-]{16,64}\.[A-Za-z0-9_-]{16,}+"
    r"|npm_[A-Za-z0-9]{30,}+|pypi-[A-Za-z0-9_-]{40,}+|hf_[A-Za-z0-9]{20,}+|dop_v1_[a-f0-9]{40,}+"
    r"|eyJ[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]{4,}+\.[A-Za-z0-9_-]*+"  # a JSON Web Token
    r")"
)
_BEARER = re.compile(r"\b(?i:Bearer|Basic)[ \t]{1,4}(?P<private>[A-Za-z0-9._~+/-]{12,}+=*+)")
_ASSIGNED = re.compile(
    r"(?:password|passwd|passphrase|pwd|secret|token|api[_-]?key|private[_-]?key|access[_-]?key|account[_-]?key)"
    r"[\"']?\s{0,3}+(?:=>|:=|[:=])\s{0,3}+[\"']?(?P<private>[^\s\"',;&)}]{6,}+)",
    re.IGNORECASE,
)
_IN_URL = re.compile(r"://[^\s/:@\"']*+:(?P<private>[^\s/@\"']++)(?=@)")
_EMAIL = re.compile(
    r"(?<![\w.+%-])[\w.+%-]++@(?:[^\W_](?:[\w-]{0,61}[^\W_])?\.){1,8}"
    r"(?:xn--[A-Za-z0-9-]{2,59}|[A-Za-z]{2,24}|[^\W\d_]{2,24})"
)
_HOME = re.compile(
    r"(?:(?<![\w.~-])(?:/var)?/home/|(?:(?<![\w.~-])|/mnt/[a-z])/Users/|[A-Za-z]:[\\/]{1,4}(?i:Users)[\\/]{1,4})"
    r"(?P<private>\w[\w.@-]{0,63}(?:(?: [\w.@-]{1,63}){1,3}(?=\\))?)"  # a name with blanks ends where the folder does
)
_OCTET = r"(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
_IPV4 = re.compile(rf"(?<![\w.-])(?:{_OCTET}\.){{3}}{_OCTET}(?![\w-])(?!\.[0-9])")
_IPV6 = re.compile(r"(?<![\w:.])(?=[0-9A-Fa-f]{0,4}:)[0-9A-Fa-f:]{2,39}+(?:(?<=:)[0-9.]{7,15}+)?(?![\w:])")
_CARD = re.compile(r"(?<![0-9A-Za-z_.+-])[0-9](?:[ -]?[0-9]){12,18}(?![0-9A-Za-z_]|[.-][0-9])")
# What stands beside a card is often a number, too: the month and year in which it ends, or its check number.
_CARD_IN_GROUPS = re.compile(
    r"(?<![0-9A-Za-z_.+-])(?:[0-9]{13,19}|[0-9]{4}(?:[ -][0-9]{4}){3}|[0-9]{4}[ -][0-9]{6}[ -][0-9]{5})"
    r"(?![0-9A-Za-z_]|[.-][0-9])"
)
# Dates come first, so that none becomes the beginning of a telephone number.
_PHONE = re.compile(
    r"(?<![\w.+/#$€£=-])(?:"
    r"(?:[12][0-9]{3}[./-][0-9]{1,2}[./-][0-9]{1,2}|[0-9]{1,2}[./-][0-9]{1,2}[./-][12][0-9]{3})(?![0-9])"
    rf"|(?P<private>{_NORTH_AMERICAN.pattern}(?![\w%-])"
    # No longer than a number may be, so that it does not take the next one along and is refused with it.
    r"|(?:\+[0-9](?:[ ()./-]{0,3}[0-9]){6,14}|(?<!:)\(?[0-9](?:[ ()./-]{0,3}[0-9]){6,13})(?![\w%]|[.,:-][0-9])))"
)

RULES = (
    Rule("key", _PRIVATE_KEY),
    Rule("key", _TOKEN),
    Rule("key", _BEARER),
    Rule("key", _ASSIGNED, _says_something, signs=(":", "=")),
    Rule("key", _IN_URL, _is_left),
    Rule("email", _EMAIL, signs=("@",)),
    Rule("home", _HOME, _is_home, signs=("/", "\\")),
    Rule("ip", _IPV4, _is_address, signs=(".",)),
    Rule("ip", _IPV6, _is_address, signs=(":",)),
    Rule("card", _CARD, _is_card),
    Rule("card", _CARD_IN_GROUPS, _is_card),
    Rule("phone", _PHONE, _is_phone),
)
