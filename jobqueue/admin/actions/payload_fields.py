"""Form fields made from the schema of a payload: one for each property, or one for the whole payload as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django import forms
from django.utils.translation import gettext

from jobqueue.admin.actions.edit_payload import LONGEST_EDITED, read_json
from jobqueue.handlers.registry import JobType

#: More properties than this are one field of JSON.
MOST_FIELDS = 40
_SHORT = 200
_JSON_ATTRS = {"rows": 3, "spellcheck": "false", "autocapitalize": "off", "autocomplete": "off"}
_CHOSEN = ("boolean", "enum")


@dataclass(frozen=True, slots=True)
class PayloadField:
    """A field of the form: its property, which is empty for the whole payload, and the kind of its values.

    The kinds are ``string``, ``integer``, ``number``, ``boolean``, ``enum`` and, for anything else, ``json``.
    """

    name: str
    place: str
    kind: str
    is_required: bool
    schema: Mapping[str, Any]

    def made(self, initial: Any, is_given: bool) -> forms.Field:
        """Make the form field. ``initial`` is the JSON value to begin with, if one is given."""
        about: dict[str, Any] = {
            "label": self.place or gettext("Payload"),
            "required": self.is_required and self.kind != "string",
            "help_text": self._help(),
        }
        if is_given:
            about["initial"] = initial if self.kind in ("string", "integer", "number") else written(initial)
        match self.kind:
            case "integer":
                return forms.IntegerField(**about)
            case "number":
                return forms.FloatField(**about)
            case "boolean" | "enum":
                nothing = [] if self.is_required else [("", "")]
                return forms.ChoiceField(
                    choices=[*nothing, *((written(one), str(one)) for one in self._values())], **about
                )
            case "string":
                widget = forms.TextInput({"class": "vTextField"}) if self._is_line else forms.Textarea({"rows": 2})
                return forms.CharField(strip=False, max_length=LONGEST_EDITED, widget=widget, **about)
        rows = {"rows": 20} if not self.place else {}
        widget = forms.Textarea(_JSON_ATTRS | rows)
        return forms.CharField(strip=False, max_length=2 * LONGEST_EDITED, widget=widget, **about)

    @property
    def _is_line(self) -> bool:
        return 0 < self.schema.get("maxLength", 0) <= _SHORT or "format" in self.schema

    @property
    def _has_short_default(self) -> bool:
        default = self.schema.get("default")
        return isinstance(default, (str, int, float)) and 0 < len(str(default)) <= _SHORT

    def _values(self) -> list[Any]:
        return [True, False] if self.kind == "boolean" else list(self.schema["enum"])

    def _help(self) -> str:
        kinds = {"json": gettext("JSON."), "string": self.schema.get("format", "")}
        parts = [str(self.schema.get("description", "")), kinds.get(self.kind, "")]
        if not self.is_required:
            parts.append(gettext("Optional."))
        if self._has_short_default:
            parts.append(gettext("The default is %(value)s.") % {"value": self.schema["default"]})
        return " ".join(filter(None, parts))

    def value(self, given: Any) -> Any:
        """Return the JSON value that a person entered. Raises ValidationError."""
        if self.kind in (*_CHOSEN, "json"):
            return read_json(given)
        # Browsers send each end of a line as two characters.
        return given.replace("\r\n", "\n") if self.kind == "string" else given

    def is_left_out(self, given: Any) -> bool:
        """Return whether the property is left out, so that its default applies."""
        return given is None or (given == "" and not (self.is_required and self.kind == "string"))

    def takes(self, value: Any) -> bool:
        """Return whether the field can show a value. A hidden value is a text, whatever it hides."""
        match self.kind:
            case "string":
                unfit = "\r\0\n" if self._is_line else "\r\0"
                return isinstance(value, str) and not any(one in value for one in unfit)
            case "integer":
                return type(value) is int
            case "number":
                return type(value) in (int, float)
            case "boolean" | "enum":
                return any(type(one) is type(value) and one == value for one in self._values())
        return True


def payload_fields(kind: JobType, payload: Any = None) -> list[PayloadField]:
    """List the fields for the payloads of a type. Each can show its part of ``payload``, if that is given."""
    schema = kind.payload.schema()
    properties, required = schema.get("properties"), schema.get("required", ())
    whole = [PayloadField("payload", "", "json", True, schema)]
    if not isinstance(properties, dict) or schema.get("additionalProperties"):
        return whole
    if not 0 < len(properties) <= MOST_FIELDS:
        return whole
    if payload is not None and not (isinstance(payload, dict) and payload.keys() <= properties.keys()):
        return whole
    found = [
        _field(f"payload_{place}", name, one, schema, name in required)
        for place, (name, one) in enumerate(properties.items())
    ]
    given: Mapping[str, Any] = payload if isinstance(payload, dict) else {}
    return list(_fitting(found, given))


def _fitting(fields: list[PayloadField], given: Mapping[str, Any]) -> Iterator[PayloadField]:
    for one in fields:
        fits = one.place not in given or one.takes(given[one.place])
        yield one if fits else PayloadField(one.name, one.place, "json", one.is_required, one.schema)


def _field(name: str, place: str, schema: Any, root: Mapping[str, Any], is_required: bool) -> PayloadField:
    found = _resolved(schema, root)
    if "enum" in found:
        kind = "enum"
    elif "const" in found:
        kind, found = "enum", {**found, "enum": [found["const"]]}
    else:
        said = found.get("type")
        kind = said if said in ("string", "integer", "number", "boolean") else "json"
    return PayloadField(name, place, kind, is_required, found)


def _resolved(schema: Any, root: Mapping[str, Any]) -> Mapping[str, Any]:
    """Follow a reference to another part of the schema."""
    if not isinstance(schema, dict):
        return {}
    name = str(schema.get("$ref", "")).removeprefix("#/$defs/")
    target = root.get("$defs", {}).get(name) if name else None
    return {**target, **schema} if isinstance(target, dict) else schema


def written(value: Any) -> str:
    """Write a JSON value for a person to edit."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    return text.encode(errors="backslashreplace").decode()
