"""Tests of tracing with the real SDKs of OpenTelemetry and Sentry."""
