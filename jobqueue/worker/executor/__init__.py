"""The processes that run handlers."""
