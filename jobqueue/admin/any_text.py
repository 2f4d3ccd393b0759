"""Admin pages that can read rows whose texts aren't valid UTF-8."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.http import HttpRequest, HttpResponseBase
from django.template.response import SimpleTemplateResponse
from django.urls import URLPattern

from jobqueue import backends

if TYPE_CHECKING:
    _Admin = admin.ModelAdmin[Any]
else:
    _Admin = admin.ModelAdmin

_View = Callable[..., HttpResponseBase]


class ReadsAnyText(_Admin):
    """An admin for rows that any program may have written."""

    @property
    def urls(self) -> list[URLPattern]:
        patterns = self.get_urls()
        for pattern in patterns:
            pattern.callback = _reading(pattern.callback)
        return patterns


def _reading(view: _View) -> _View:
    @wraps(view)
    def read(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        with backends.current().any_text():
            response = view(request, *args, **kwargs)
            if isinstance(response, SimpleTemplateResponse):
                response.render()  # templates may read rows, too
            return response

    return read
