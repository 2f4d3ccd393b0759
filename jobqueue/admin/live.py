"""Pages that keep themselves up to date: ``dashboard.js`` asks for the parts that have changed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from hashlib import blake2b
from typing import Any, NamedTuple, Protocol

from django.forms import Media, Script
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.template.loader import render_to_string
from django.utils.safestring import SafeString

from jobqueue.admin.base import LOOKS, PageAdmin
from jobqueue.admin.dashboard import scales

#: The interval, in seconds, at which an open page asks for changes.
EVERY = 5
SCRIPT = Media(js=[Script("jobqueue/dashboard.js", defer=True)])  # type: ignore[list-item]


class LivePageAdmin(PageAdmin):
    """An admin with pages that keep themselves up to date."""

    @property
    def media(self) -> Media:
        return LOOKS + SCRIPT


class LivePart(Protocol):
    """A part of a page: its name, its markup, and a hash of the markup."""

    @property
    def name(self) -> str: ...
    @property
    def body(self) -> SafeString: ...
    @property
    def digest(self) -> str: ...


class RenderedPart(NamedTuple):
    """A part of a page, rendered from a template."""

    name: str
    body: SafeString

    @property
    def digest(self) -> str:
        """A hash of the markup."""
        return digest(self.body)


def digest(body: str) -> str:
    """Return a hash of a part's markup."""
    return blake2b(body.encode(errors="surrogatepass"), digest_size=8).hexdigest()


def part(name: str, template: str, context: Mapping[str, Any]) -> RenderedPart:
    """Render a part of a page."""
    return RenderedPart(name, render_to_string(f"jobqueue/admin/{template}.html", dict(context)))


def frame(address: str, reload: str, now: datetime) -> dict[str, Any]:
    """Return what the template ``live_head.html`` needs: where to ask, how often, and the time of this page."""
    return {"live": address, "reload": reload, "every": EVERY, "at": clock(now)}


def changes(request: HttpRequest, now: datetime, parts: Iterable[LivePart]) -> HttpResponse:
    """Answer with the parts that have changed. The page sends the digests of those that it has."""
    known = request.GET.get("known", "").split(",")
    changed = {one.name: {"digest": one.digest, "html": one.body} for one in parts if one.digest not in known}
    return JsonResponse({"at": clock(now), "parts": changed}, headers={"Cache-Control": "no-store"})


def clock(now: datetime) -> str:
    """Format the time of a page."""
    return f"{scales.here(now):%H:%M:%S}"
