"""Spans, errors and check-ins for Sentry, where ``sentry_sdk`` is initialised."""
