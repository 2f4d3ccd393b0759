"""A relay that brings over what waits, in a fork of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.core.management import CommandError, call_command

from tests.attacks.drains import LIES
from tests.attacks.isolated import isolated, last_line

ONCE = ("relay", "--once")


def relay_all(*words: str, seconds: float = 40.0) -> str:
    """Relay until nothing waits; say what is wrong, or nothing."""

    def work(tell: Callable[[Any], None]) -> None:
        try:
            call_command("jobqueue", *(words or ONCE))
            tell(0)
        except SystemExit as end:
            tell(end.code)
        except CommandError as error:
            print(f"CommandError: {error}")  # noqa: T201
            tell(error.returncode)

    result = isolated(work, seconds)
    said = [line for line in result.output.splitlines() if any(lie in line for lie in LIES)]
    if result.trouble:
        return result.trouble
    if result.told != [0] or said:
        return f"status {result.told}: {said[:1]} {last_line(result.output)}"
    return ""
