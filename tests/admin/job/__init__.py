"""Tests of ``jobqueue.admin.job``."""
