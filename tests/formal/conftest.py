"""The model checker Spin."""

from __future__ import annotations

import pytest

from tests.requirements import SPIN


@pytest.fixture
def spin(tmp_path):
    """A folder to check a model in; skips where there is no Spin."""
    if SPIN.missing:
        pytest.skip(SPIN.reason)
    return tmp_path
