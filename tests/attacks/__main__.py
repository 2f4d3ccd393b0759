"""The long run, ``python -m tests.attacks --minutes 60``: rounds of forged rows for everything that reads rows.

Each round has a seed of its own, and ``--seed N --rounds 1`` repeats it. Every other round takes one hostile value, in
turn of all there are; the others what chance makes. It ends with status 1 if anything was found.
"""

from __future__ import annotations

import argparse
import os
import sys


def read(words: list[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.attacks", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0, help="How long it goes on; default: 60.")
    parser.add_argument("--rounds", type=int, default=None, help="End after so many rounds.")
    parser.add_argument("--seed", type=int, default=None, help="The first round's seed; by default, chance.")
    parser.add_argument("--database", choices=("sqlite", "postgres", "both"), default="both", help="Default: both.")
    parser.add_argument("--skip-relay", action="store_true", help="Leave the relay out.")
    return parser.parse_args(words)


def main() -> int:
    """Set Django up as the tests do, and run."""
    given = read()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
    import django

    django.setup()
    from tests.attacks.long_run import run

    return run(given)


if __name__ == "__main__":
    sys.exit(main())
