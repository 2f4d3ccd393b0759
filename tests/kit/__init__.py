"""Tests of the tools for tests, on each backend."""
