"""File jobs: ``create_file`` and ``delete_file``, which cannot leave the folder ``JOBQUEUE["FILES_ROOT"]``."""

from __future__ import annotations
