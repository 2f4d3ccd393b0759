"""How far a job says that it is, read from its report: there may be anything in it, of a handler or another program."""

from __future__ import annotations

from typing import Any

from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Left
from django.utils.formats import number_format
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext


class _Readable(KeyTextTransform):
    """A value of JSON that this SQLite may not take for JSON: another program's may allow more levels."""

    def as_sqlite(self, compiler: Any, connection: Any, **others: Any) -> tuple[str, tuple[Any, ...]]:
        value, params = super().as_sqlite(compiler, connection, **others)
        column, given, _keys = self.preprocess_lhs(compiler, connection)
        return f"CASE WHEN json_valid({column}) THEN {value} END", (*given, *params)


#: For lists: the beginning of the one value, so that the report is not read, whatever else it holds.
PERCENT = Left(_Readable("percent", "progress"), 20)


def percent(value: object) -> float | None:
    """Take a value for a share in percent, to one decimal; ``None`` where it is none."""
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return None
    try:
        share = round(float(value), 1)
    except (ValueError, OverflowError):
        return None
    return share if 0 <= share <= 100 else None


def bar(share: float | None) -> SafeString | None:
    """Draw a share and write it; nothing where there is none."""
    if share is None:
        return None
    words = gettext("%(percent)s %%") % {"percent": number_format(f"{share:g}")}
    drawn = '<progress class="jq-progress" max="100" value="{}" aria-label="{}"></progress> <span>{}</span>'
    return format_html(drawn, f"{share:g}", gettext("Progress"), words)
