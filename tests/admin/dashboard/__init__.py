"""Tests of ``jobqueue.admin.dashboard``."""
