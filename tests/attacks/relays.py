"""A relay in a forked process, which moves what waits."""

from __future__ import annotations

from tests.attacks.drains import LIES
from tests.attacks.isolated import isolated_command, last_line


def relay_all(seconds: float = 40.0) -> str:
    """Relay until nothing waits; say what is wrong, or nothing."""
    result = isolated_command("jobqueue", "relay", "--once", seconds=seconds)
    said = [line for line in result.output.splitlines() if any(lie in line for lie in LIES)]
    if result.trouble:
        return result.trouble
    if result.told != [0] or said:
        return f"status {result.told}: {said[:1]} {last_line(result.output)}"
    return ""
