"""The example project's settings, with ports that kill."""

from __future__ import annotations

from example_project.settings import *  # noqa: F403
from example_project.settings import CAPTURE

CAPTURE["PORTS"]["store"]["file"] = "tests.example.killing.KillingStore"
CAPTURE["PORTS"]["chain"]["file"] = "tests.example.killing.KillingChain"
