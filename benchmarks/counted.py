"""The process whose instructions are counted, from its second repetition on."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
from importlib import import_module

from benchmarks.databases import Place

WARM = 3


def main() -> None:
    """Do what the argument requests under callgrind, which starts to count on request."""
    asked = json.loads(sys.argv[1])
    Place(**asked["place"]).configure()
    act = import_module("benchmarks.counting").ACTS[asked["act"]]  # not before the apps are ready
    act(WARM)
    # A full collection that fell into one run and not into the other would outweigh what is counted.
    gc.collect()
    gc.freeze()
    command = ["callgrind_control", "--instr=on", str(os.getpid())]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    act(asked["times"])


if __name__ == "__main__":
    main()
