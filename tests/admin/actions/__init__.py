"""Tests of ``jobqueue.admin.actions``."""
