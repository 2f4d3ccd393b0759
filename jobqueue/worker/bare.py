"""A zygote without Django, for applications that start threads as they come up: each executor sets Django up itself."""

from __future__ import annotations

import socket
import sys

import django

from jobqueue.worker.executor import Plan
from jobqueue.worker.zygote import Nursery

if __name__ == "__main__":
    descriptor, slots, full = map(int, sys.argv[1:])
    Nursery(socket.socket(fileno=descriptor), Plan(slots, full), prepare=django.setup).serve()
