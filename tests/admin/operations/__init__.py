"""Tests of ``jobqueue.admin.operations``."""
