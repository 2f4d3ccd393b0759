"""Model fields that Django doesn't have: moments as text on SQLite, keys with one index, strictly typed columns."""

from __future__ import annotations

from datetime import UTC, datetime
from json import JSONEncoder
from typing import TYPE_CHECKING, Any, TypeVar
from zoneinfo import ZoneInfo

from django import forms
from django.conf import settings
from django.core.exceptions import FieldError, ValidationError
from django.db import models
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models.fields.json import KeyTransform
from django.db.models.lookups import Exact, GreaterThan, GreaterThanOrEqual, LessThan, LessThanOrEqual
from django.utils.translation import gettext_lazy as _

from jobqueue import foreign_json
from jobqueue.clock import from_text, to_text

_ST = TypeVar("_ST", contravariant=True)
_GT = TypeVar("_GT", covariant=True)

if TYPE_CHECKING:
    _Field = models.Field
else:

    class _Field(models.Field):
        """Django's field, which only a type checker can subscript."""

        def __class_getitem__(cls, _item: object) -> type:
            return cls


#: After the minutes come seconds with any number of decimals, and a Z.
_FORM = "????-??-??T??:??:*[0-9]Z"


class MomentField(_Field[_ST, _GT]):
    """An aware moment in UTC, with ``USE_TZ`` on or off: ``timestamptz`` on Postgres, ``…T…Z`` text on SQLite.

    Other programs may write any number of decimals; text order is time order to the precision of the coarsest writer.
    It isn't a ``DateTimeField``, because Django's date lookups and truncations would silently find nothing in such
    text; they are refused on every database. Compare with ``__lt``, ``__gte`` or ``__range``.
    """

    description = _("A moment in UTC")

    _pyi_private_set_type: datetime | str
    _pyi_private_get_type: datetime

    def db_type(self, connection: BaseDatabaseWrapper) -> str:
        return "text" if connection.vendor == "sqlite" else "timestamp with time zone"

    def db_check(self, connection: BaseDatabaseWrapper) -> str | None:
        name = connection.ops.quote_name(str(self.column))
        # Neither a year that a time zone could push out of range nor an infinity: reading one would raise.
        bounds = f"{name} > '0001-01-02' AND {name} < '9999-12-30'"
        if connection.vendor != "sqlite":
            return bounds
        # About ten moments are checked in the life of a job, so this is the cheapest complete check. julianday()
        # accepts only
        # moments, in a few more forms than ours, and GLOB only our form. date() turns the 30th of February into the 2nd
        # of
        # March, which reveals impossible days. There is no space after commas, because Django's introspection would
        # take it
        # for the end of the column.
        return (
            f"{name} IS NULL OR ({name} GLOB '{_FORM}' AND julianday({name}) IS NOT NULL AND {bounds} "
            f"AND substr({name},12,2) < '24' "
            f"AND (substr({name},9,2) < '29' OR date(substr({name},1,10),'+0 days') IS substr({name},1,10)))"
        )

    def from_db_value(self, value: Any, _expression: Any, connection: BaseDatabaseWrapper) -> datetime | None:
        return None if value is None else as_utc(value, connection)

    def to_python(self, value: Any) -> datetime | None:
        if value is None or isinstance(value, datetime):
            return value
        try:
            moment = datetime.fromisoformat(value)
            if moment.tzinfo is None:
                raise ValueError("a moment without a zone")
            return moment.astimezone(UTC)
        except (TypeError, ValueError, OverflowError) as error:
            raise ValidationError(_("“%(value)s” is not a moment."), code="invalid", params={"value": value}) from error

    def get_prep_value(self, value: Any) -> Any:
        value = super().get_prep_value(value)
        if value is None or hasattr(value, "resolve_expression"):
            return value
        moment = self.to_python(value)
        if moment is not None and moment.tzinfo is None:
            raise ValueError(f"{self.name} needs an aware datetime, got the naive {moment!r}")
        return moment

    def get_db_prep_value(self, value: Any, connection: BaseDatabaseWrapper, prepared: bool = False) -> Any:
        value = super().get_db_prep_value(value, connection, prepared)
        return to_text(value) if connection.vendor == "sqlite" and isinstance(value, datetime) else value

    def value_to_string(self, obj: models.Model) -> str:
        value: Any = self.value_from_object(obj)
        return "" if value is None else to_text(value)

    def formfield(self, **kwargs: Any) -> Any:
        return super().formfield(**{"form_class": forms.DateTimeField, **kwargs})


def as_utc(value: str | datetime, connection: BaseDatabaseWrapper) -> datetime:
    """Return a moment that the database returned, in UTC. With ``USE_TZ`` off, Postgres' driver returns naive ones."""
    if isinstance(value, str):
        return from_text(value)
    if value.tzinfo is None:
        value = value.replace(tzinfo=ZoneInfo(settings.TIME_ZONE))
    return value.astimezone(UTC)


class _OfMoments:
    """A comparison that refuses expressions which SQLite computes in another form: its clock, F() plus a timedelta."""

    def get_prep_lookup(self) -> Any:
        other: Any = self.rhs  # type: ignore[attr-defined]
        field = getattr(other, "_output_field_or_none", None)
        if hasattr(other, "resolve_expression") and not isinstance(field, MomentField):
            raise FieldError("A moment can only be compared with a moment or a column of moments.")
        return super().get_prep_lookup()  # type: ignore[misc]


for _lookup in (Exact, GreaterThan, GreaterThanOrEqual, LessThan, LessThanOrEqual):
    MomentField.register_lookup(type(_lookup.__name__, (_OfMoments, _lookup), {}))


class OneType:
    """A column for values of its own type only: without a CHECK, SQLite stores values of any type in any column.

    These conditions cost a third less on insert than ``typeof()``.
    """

    #: In SQLite, a BLOB is greater than any text, and x'' is the least BLOB. Numbers are stored as text.
    sqlite_check = "{name} < x''"

    def db_check(self, connection: BaseDatabaseWrapper) -> str | None:
        given: str | None = super().db_check(connection)  # type: ignore[misc]
        if connection.vendor != "sqlite":
            return given
        own = self.sqlite_check.format(name=connection.ops.quote_name(str(self.column)))  # type: ignore[attr-defined]
        return f"({given}) AND {own}" if given else own


class _Whole(OneType):
    """A whole number. The ``|`` operator changes text, BLOBs, fractions and infinities."""

    sqlite_check = "{name} | 0 = {name} AND {name} >= -2147483648 AND {name} <= 2147483647"


class NameField(OneType, models.CharField):  # type: ignore[type-arg]
    """A short text."""


class WordsField(OneType, models.TextField):  # type: ignore[type-arg]
    """A long text."""


class CountField(_Whole, models.IntegerField):  # type: ignore[type-arg]
    """A 32-bit number, also on SQLite."""


class SmallCountField(_Whole, models.SmallIntegerField):  # type: ignore[type-arg]
    """A 16-bit number on Postgres."""


class FenceField(_Whole, models.BigIntegerField):  # type: ignore[type-arg]
    """A 64-bit number."""

    sqlite_check = "{name} | 0 = {name}"


class AmountField(OneType, models.FloatField):  # type: ignore[type-arg]
    """A number with decimals. In SQLite, any text is greater than any number."""

    sqlite_check = "{name} < ''"


class FlagField(OneType, models.BooleanField):  # type: ignore[type-arg]
    """A boolean."""

    sqlite_check = "({name} = 0 OR {name} = 1)"


class _AsWritten(JSONEncoder):
    def encode(self, o: Any) -> str:
        return str(o.text)


class DataField(OneType, models.JSONField):
    """JSON that any program may have written. Reading it never fails; see ``jobqueue.foreign_json``.

    ``Unreadable`` values are written back unchanged.
    """

    def from_db_value(self, value: Any, expression: Any, connection: BaseDatabaseWrapper) -> Any:
        if value is None or (isinstance(expression, KeyTransform) and not isinstance(value, str)):
            return value
        return foreign_json.read(value)

    def get_db_prep_value(self, value: Any, connection: BaseDatabaseWrapper, prepared: bool = False) -> Any:
        if isinstance(value, foreign_json.Unreadable):
            return connection.ops.adapt_json_value(value, _AsWritten)
        return super().get_db_prep_value(value, connection, prepared)


class NumberKey(models.BigAutoField):  # type: ignore[type-arg]
    """A ``BigAutoField`` without ``AUTOINCREMENT`` on SQLite.

    ``AUTOINCREMENT`` continues from the largest number ever used. After a row with the largest possible number, the
    table would accept no others.
    """

    def db_type_suffix(self, connection: BaseDatabaseWrapper) -> str | None:
        return None if connection.vendor == "sqlite" else super().db_type_suffix(connection)


class KeyField(NameField):
    """A text primary key without the second index for ``LIKE`` that Django adds on Postgres."""

    def db_type(self, connection: BaseDatabaseWrapper) -> str | None:
        if connection.vendor != "postgresql":
            return super().db_type(connection)
        return f"character varying({self.max_length})"  # Django adds that index to columns of the type "varchar" only
