"""The removal of private data of known shapes from a text before it is stored. Pure.

Each pattern moves past what it has matched or scans a bounded length, so no text takes quadratic time. Functions check
what a shape can't express, such as check digits and ranges of numbers.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from dataclasses import dataclass, field

#: Stored with each message, to record which rules were applied.
VERSION = "2"


@dataclass(frozen=True, slots=True)
class Finding:
    """One passage of private data. ``original`` is for hashing and checking, and is never stored."""

    category: str
    replacement: str
    original: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Sanitised:
    """A text that may be stored, and the removed passages."""

    text: str
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class Rule:
    """A category and its pattern. The group ``private`` is removed, or the whole match if there is no such group.

    Texts without any of its ``signs`` can't match, and checking for signs is a hundred times as fast as the pattern.
    """

    category: str
    pattern: re.Pattern[str]
    is_private: Callable[[str], bool] = bool
    signs: tuple[str, ...] = ("",)

    @property
    def replacement(self) -> str:
        """Return the placeholder for a removed passage."""
        return f"[{self.category.upper()}]"


def sanitise(text: str) -> Sanitised:
    """Remove everything that the rules find, one rule after the other."""
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


# Checks beyond the shape


def _is_card(text: str) -> bool:
    """Return whether a number has the length, prefix and check digit of a payment card."""
    digits = [int(digit) for digit in text if digit.isdecimal()]
    doubled = [sum(divmod(2 * digit, 10)) for digit in digits[-2::-2]]
    return digits[0] in (2, 3, 4, 5, 6) and len(set(digits)) > 1 and (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0


def _is_address(text: str) -> bool:
    """Return whether an IP address may identify a person; 127.0.0.1 doesn't."""
    try:
        found = ipaddress.ip_address(text)
    except ValueError:
        return False
    if found.is_loopback or found.is_unspecified or text.endswith(".0.0.0"):  # nobody's, or a version
        return False
    return found.version == 4 or any(map(str.isdecimal, text))


def _is_account(text: str) -> bool:
    """Whether the check digits of a bank account are right."""
    letters = "".join(filter(str.isalnum, text)).upper()
    return int("".join(str(int(letter, 36)) for letter in letters[4:] + letters[:4])) % 97 == 1


def _is_phone(text: str) -> bool:
    """Return whether a number has as many digits as a telephone number, and isn't a date or an amount."""
    digits = list(filter(str.isdecimal, text))
    count = len(digits)
    if text.startswith("+"):
        return 8 <= count <= 15
    if len(set(digits)) <= 2:
        return False
    return _NORTH_AMERICAN.fullmatch(text) is not None or (text.startswith(("0", "(0")) and 9 <= count <= 14)


def _is_left(text: str) -> bool:
    """Return whether no other rule has removed it."""
    return not text.startswith("[")


def _is_home(name: str) -> bool:
    return name not in {"Shared", "Public", "Default", "linuxbrew"}


def _says_something(text: str) -> bool:
    """Return whether an assigned value may be a secret: no placeholder, no variable's name, and not too short."""
    return len(text) >= 6 and not _PLACEHOLDER.fullmatch(text)


def _is_phrase(text: str) -> bool:
    """Whether what is assigned in quotes may be a secret: blanks in it or not, but no sentence about one."""
    return _says_something(text) and not _SENTENCE.fullmatch(text)


def _is_random(text: str) -> bool:
    """Whether a session's id looks drawn by lot: names of things have hardly a digit."""
    return sum(map(str.isdecimal, text)) > 1 and not _PLACEHOLDER.fullmatch(text)


#: What stands between the digits of a number, also where it keeps them on one line.
_BLANK, _HYPHEN = " \u00a0\u2007\u2009\u202f", "\u2011-"
_NORTH_AMERICAN = re.compile(
    rf"(?:1[{_BLANK}.{_HYPHEN}])?(?:\([2-9][0-9]{{2}}\)[{_BLANK}]?|[2-9][0-9]{{2}}[{_BLANK}.{_HYPHEN}])"
    rf"[2-9][0-9]{{2}}[{_BLANK}.{_HYPHEN}][0-9]{{4}}"
)
_SENTENCE = re.compile(r"[A-Z][a-z]* .*[.!?]", re.DOTALL)
_PLACEHOLDER = re.compile(
    r"[<\[{].*|\$(?:[{(].*|\w+)|%(?:[({].*|\w+%?)|\*+|\.+|x[x*-]*|[a-z_.]+[(\[].*"
    r"|(?:none|null|true|false|undefined|changeme|example|required|optional|string)"
    r"|(?:os|process|self|settings|config|env|request)\..*|your[_-].*",
    re.IGNORECASE | re.DOTALL,
)

# The rules. Those that can contain others come first: a key may seem to contain a telephone number.

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
_BEFORE_ASSIGNED = (
    r"(?:password|passwd|passphrase|pwd|secret|token|api[_-]?key|private[_-]?key|access[_-]?key|account[_-]?key)"
    r"[\"']?\s{0,3}+(?:=>|:=|[:=])\s{0,3}+"
)
_SECRET_IN_QUOTES = re.compile(
    rf"{_BEFORE_ASSIGNED}(?P<quote>[\"'])(?P<private>(?:(?!(?P=quote))[^\n]){{6,200}}+)(?P=quote)", re.IGNORECASE
)
_ASSIGNED = re.compile(rf"{_BEFORE_ASSIGNED}[\"']?(?P<private>[^\s\"',;&)}}]{{6,}}+)", re.IGNORECASE)
_SESSION = re.compile(
    r"(?:sess(?:ion)?(?:[_-]?(?:id|key))?|(?<![a-z])sid)[\"']?\s{0,3}+[:=]\s{0,3}+[\"']?"
    r"(?P<private>[A-Za-z0-9%._+/-]{16,}+=*+)",
    re.IGNORECASE,
)
# A password may hold an @ of its own: the host begins behind the last one.
_IN_URL = re.compile(r"://[^\s/:@\"']*+:(?P<private>[^\s/@\"']++(?:@[^\s/@\"',;]++)*)(?=@)")
_EMAIL = re.compile(
    r"(?<![\w.+%-])[\w.+%-]++@(?:[^\W_](?:[\w-]{0,61}[^\W_])?\.){1,8}"
    r"(?:xn--[A-Za-z0-9-]{2,59}|[A-Za-z]{2,24}|[^\W\d_]{2,24})"
)
_HOME = re.compile(
    r"(?:(?<![\w.~-])(?:/var)?/home/|(?:(?<![\w.~-])|/mnt/[a-z])/Users/|[A-Za-z]:[\\/]{1,4}(?i:Users)[\\/]{1,4})"
    r"(?P<private>\w[\w.@-]{0,63}(?:(?: [\w.@-]{1,63}){1,3}(?=\\))?)"  # a name with spaces ends with the folder
)
_OCTET = r"(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
# A version may have four parts, too.
_NO_VERSION = "".join(
    f"(?<!{before})"
    for before in (
        "ersion ",
        "ersion: ",
        "ersion=",
        "ersion = ",
        'ersion": "',
        "elease ",
        "==",
        ">=",
        "<=",
        "~=",
        "Chrome/",
    )
)
_IPV4 = re.compile(rf"(?<![\w.-])(?=[0-9]){_NO_VERSION}(?:{_OCTET}\.){{3}}{_OCTET}(?![\w-])(?!\.[0-9])")
_IPV6 = re.compile(r"(?<![\w:.])(?=[0-9A-Fa-f]{0,4}:)[0-9A-Fa-f:]{2,39}+(?:(?<=:)[0-9.]{7,15}+)?(?![\w:])")
# By the length that a country's accounts have.
_ACCOUNT = re.compile(
    r"(?<![0-9A-Za-z_+-])(?=[A-Z]{2}[0-9]{2})(?:"
    + "|".join(
        rf"(?:{countries})[0-9]{{2}}(?:[{_BLANK}{_HYPHEN}]?[0-9A-Z]){{{length - 4}}}"
        for length, countries in {
            15: "NO",
            16: "BE",
            18: "DK|FI|FK|FO|GL|NL|SD",
            19: "MK|SI",
            20: "AT|BA|EE|KZ|LT|LU|MN|XK",
            21: "CH|HR|LI|LV",
            22: "BG|BH|CR|DE|GB|GE|IE|ME|RS|VA",
            23: "AE|GI|IL|IQ|OM|SO|TL",
            24: "AD|CZ|ES|MD|PK|RO|SA|SE|SK|TN|VG",
            25: "LY|PT|ST",
            26: "IS|TR",
            27: "BI|DJ|FR|GR|IT|MC|MR|SM",
            28: "AL|AZ|BY|CY|DO|GT|HN|HU|LB|NI|PL|SV",
            29: "BR|EG|PS|QA|UA",
            30: "JO|KW|MU|YE",
            31: "MT|SC",
            32: "LC",
            33: "RU",
        }.items()
    )
    + r")(?![0-9A-Za-z_])",
    re.IGNORECASE,
)
_CARD = re.compile(rf"(?<![0-9A-Za-z_.+-])[0-9](?:[{_BLANK}{_HYPHEN}]?[0-9]){{12,18}}(?![0-9A-Za-z_]|[.-][0-9])")
# Numbers beside a card: its expiry date or its check number.
_CARD_IN_GROUPS = re.compile(
    rf"(?<![0-9A-Za-z_.+-])(?:[0-9]{{13,19}}|[0-9]{{4}}(?:[{_BLANK}{_HYPHEN}][0-9]{{4}}){{3}}"
    rf"|[0-9]{{4}}[{_BLANK}{_HYPHEN}][0-9]{{6}}[{_BLANK}{_HYPHEN}][0-9]{{5}})"
    r"(?![0-9A-Za-z_]|[.-][0-9])"
)
# Dates come first, so that none is taken for the beginning of a telephone number.
_PHONE = re.compile(
    r"(?<![\w.+/#$€£=-])(?:"
    r"(?:[12][0-9]{3}[./-][0-9]{1,2}[./-][0-9]{1,2}|[0-9]{1,2}[./-][0-9]{1,2}[./-][12][0-9]{3})(?![0-9])"
    rf"|(?P<private>{_NORTH_AMERICAN.pattern}(?![\w%-])"
    # Limited to a number's length, so that it doesn't include the next number and fail with it.
    rf"|(?:\+[0-9](?:[{_BLANK}()./{_HYPHEN}]{{0,3}}[0-9]){{6,14}}"
    rf"|(?<!:)\(?[0-9](?:[{_BLANK}()./{_HYPHEN}]{{0,3}}[0-9]){{6,13}})(?![\w%]|[.,:-][0-9])))"
)

RULES = (
    Rule("key", _PRIVATE_KEY),
    Rule("key", _TOKEN),
    Rule("key", _BEARER),
    Rule("key", _SECRET_IN_QUOTES, _is_phrase, signs=('"', "'")),
    Rule("key", _ASSIGNED, _says_something, signs=(":", "=")),
    Rule("key", _SESSION, _is_random, signs=("sess", "SESS", "Sess", "sid", "SID")),
    Rule("key", _IN_URL, _is_left),
    Rule("email", _EMAIL, signs=("@",)),
    Rule("home", _HOME, _is_home, signs=("/", "\\")),
    Rule("ip", _IPV4, _is_address, signs=(".",)),
    Rule("ip", _IPV6, _is_address, signs=(":",)),
    Rule("account", _ACCOUNT, _is_account),
    Rule("card", _CARD, _is_card),
    Rule("card", _CARD_IN_GROUPS, _is_card),
    Rule("phone", _PHONE, _is_phone),
)
