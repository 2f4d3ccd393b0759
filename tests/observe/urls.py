"""The URLs of a project that offers its monitors the views of the queue."""

from __future__ import annotations

from django.urls import path

from jobqueue.observe import views

urlpatterns = [path("health/", views.health), path("metrics/", views.metrics)]
