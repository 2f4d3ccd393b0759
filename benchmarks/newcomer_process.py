"""The process that enqueues and starts a worker with a newcomer's settings, and prints the speed."""

from __future__ import annotations

import json
import sys

from django.core.management import call_command

from benchmarks.databases import Place
from benchmarks.draining import drained
from benchmarks.jobs import Resize, resize_image
from benchmarks.workers import end_in_order


def main() -> None:
    """Do what the line on standard input requests."""
    end_in_order()
    asked = json.loads(sys.stdin.readline())
    place = Place(**asked["place"])
    place.configure()
    call_command("migrate", verbosity=0)
    # A newcomer's worker writes a line for each job.
    run = drained(place, resize_image, [Resize(image_id=number) for number in range(asked["count"])], verbosity=1)
    print(json.dumps(run.rate), flush=True)


if __name__ == "__main__":
    main()
