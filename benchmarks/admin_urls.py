"""The URLs of the two admins that are compared."""

from __future__ import annotations

from django.contrib import admin
from django.urls import URLPattern, URLResolver, path

from benchmarks.plain_admin import plain

urlpatterns: list[URLPattern | URLResolver] = [path("admin/", admin.site.urls), path("plain/", plain.urls)]
