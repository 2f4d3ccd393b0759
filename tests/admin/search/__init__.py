"""Tests of ``jobqueue.admin.search``."""
