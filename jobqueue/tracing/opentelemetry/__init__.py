"""Spans and metrics by OpenTelemetry's API, with its conventions for messaging."""
