"""Templates of links to other systems, such as ``https://logs.example.com/?job={id}``."""

from __future__ import annotations

from collections.abc import Mapping
from string import Formatter
from urllib.parse import quote, urlsplit

#: The fields that a template may have.
FIELDS = ("id", "type", "queue", "tenant", "workspace", "parent", "worker", "trace")


def obstacle(template: object) -> str:
    """Return what is wrong with a template, or an empty string."""
    if not isinstance(template, str) or not template.isprintable() or " " in template:
        return "it must be a URL without spaces"
    try:
        parts = list(Formatter().parse(template))
    except ValueError as error:
        return str(error)
    for _text, field, form, conversion in parts:
        if field is not None and (field not in FIELDS or form or conversion):
            return f"{{{field}}} is not one of {', '.join(f'{{{one}}}' for one in FIELDS)}"
    return "" if _is_web(template) else "it must begin with https:// or http:// and name a host"


def filled(template: str, values: Mapping[str, str | None]) -> str:
    """Fill a template with a job's values. Return an empty string if the job lacks one of them."""
    fields = [field for _text, field, _form, _conversion in Formatter().parse(template) if field is not None]
    if not all(values.get(field) for field in fields):
        return ""
    return template.format(**{field: quote(values[field] or "", safe="", errors="replace") for field in fields})


def _is_web(template: str) -> bool:
    try:
        parts = urlsplit(template)
    except ValueError:
        return False
    return parts.scheme in ("https", "http") and bool(parts.netloc) and "{" not in parts.netloc
