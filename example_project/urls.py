"""The URLs of the example project: the capture view, the admin, and a redirect to it."""

from __future__ import annotations

from django.contrib import admin
from django.urls import URLPattern, URLResolver, include, path
from django.views.generic import RedirectView

urlpatterns: list[URLPattern | URLResolver] = [
    path("", RedirectView.as_view(pattern_name="admin:index")),
    path("", include("example_project.capture.urls")),
    path("admin/", admin.site.urls),
]
