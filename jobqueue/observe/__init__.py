"""Logs, signals, metrics, failures, and reasons why a job is not running."""
