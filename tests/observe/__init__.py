"""Tests of what monitors outside read."""
