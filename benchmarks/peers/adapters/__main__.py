"""The command of an adapter's processes: ``python -m benchmarks.peers.adapters NAME serve`` or ``work``."""

from __future__ import annotations

import json
import logging
import sys
from importlib import import_module
from typing import Any

from benchmarks.peers.adapters.protocol import Adapter, Place, serve
from benchmarks.peers.adapters.tally import assemble


def make(name: str, asked: dict[str, Any]) -> Adapter:
    """Set a peer up as it is asked for; unless it is to be as installed, it logs errors only."""
    if not asked["options"].get("as_installed"):
        logging.disable(logging.WARNING)
    adapter: Adapter = import_module(f"benchmarks.peers.adapters.{name}").Adapter(
        Place(**asked["place"]), asked["options"]
    )
    return adapter


def main() -> None:
    """Answer the run's questions until they end, or work until told to stop."""
    name, role = sys.argv[1:3]
    asked = json.loads(sys.argv[3])
    adapter = make(name, asked)
    if role == "work":
        assemble(asked["processes"])
        adapter.work()
    else:
        serve(adapter)


if __name__ == "__main__":
    main()
