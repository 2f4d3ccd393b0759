"""A run of pytest in a project of its own, as a user's."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


#: The environment of a run of its own, whatever the run around it was asked for.
OWN = {"PYTHONPATH": str(ROOT), "DJANGO_SETTINGS_MODULE": "tests.settings", "PYTEST_ADDOPTS": ""}


def pytest_in(folder, *arguments, **environment):
    """Run pytest in a folder that holds nothing else."""
    (folder / "pytest.ini").write_text("[pytest]\n")
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments],
        cwd=folder,
        env=os.environ | OWN | environment,
        capture_output=True,
        text=True,
        timeout=60,
    )
