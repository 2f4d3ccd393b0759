"""The URLs of a project that Prometheus scrapes."""

from __future__ import annotations

from django.urls import path

from jobqueue.observe import views

urlpatterns = [path("metrics/", views.metrics)]
