"""A zygote without Django, for applications that start threads at import: each executor sets Django up itself."""

from __future__ import annotations

import os
import socket
import sys

import django

from jobqueue.worker.options import Plan
from jobqueue.worker.zygote.zygote import ZygoteProcess

if __name__ == "__main__":
    slots, full, descriptor, *kept = map(int, sys.argv[1:])
    for number in (descriptor, *kept):
        os.set_inheritable(number, False)  # programs that a handler starts must not keep them open
    ZygoteProcess(socket.socket(fileno=descriptor), Plan(slots, full), prepare=django.setup).serve()
