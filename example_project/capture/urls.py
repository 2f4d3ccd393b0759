"""The URLs of the pipeline."""

from __future__ import annotations

from django.urls import path

from example_project.capture.views import capture_event

app_name = "capture"
urlpatterns = [path("capture/", capture_event, name="event")]
