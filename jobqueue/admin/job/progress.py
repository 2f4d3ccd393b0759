"""The progress that a job reports. It comes from a handler or another program, so it may be anything."""

from __future__ import annotations

from typing import Any

from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Left
from django.utils.formats import number_format
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext


class _Readable(KeyTextTransform):
    """A JSON value that this SQLite may find invalid: another program's version may allow deeper nesting."""

    def as_sqlite(self, compiler: Any, connection: Any, **others: Any) -> tuple[str, tuple[Any, ...]]:
        value, params = super().as_sqlite(compiler, connection, **others)
        column, given, _keys = self.preprocess_lhs(compiler, connection)
        return f"CASE WHEN json_valid({column}) THEN {value} END", (*given, *params)


#: For lists: the first characters of this value only, since the rest of the report may be large.
PERCENT = Left(_Readable("percent", "progress"), 20)


def percent(value: object) -> float | None:
    """Read a percentage, rounded to one decimal; ``None`` if the value is not one."""
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return None
    try:
        share = round(float(value), 1)
    except (ValueError, OverflowError):
        return None
    return share if 0 <= share <= 100 else None


def bar(share: float | None) -> SafeString | None:
    """Render a progress bar with its percentage, or ``None`` without one."""
    if share is None:
        return None
    words = gettext("%(percent)s %%") % {"percent": number_format(f"{share:g}")}
    drawn = '<progress class="jq-progress" max="100" value="{}" aria-label="{}"></progress> <span>{}</span>'
    return format_html(drawn, f"{share:g}", gettext("Progress"), words)
