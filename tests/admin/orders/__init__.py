"""Tests of ``jobqueue.admin.lists``."""
