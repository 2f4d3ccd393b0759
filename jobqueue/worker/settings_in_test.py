"""The settings of a worker that a test starts: those of the project, with the databases of the test."""

from __future__ import annotations

import copy
import json
import os
from importlib import import_module
from typing import Any

_given = json.loads(os.environ["JOBQUEUE_TESTING_SETTINGS"])
_project = import_module(_given["module"])

globals().update({name: getattr(_project, name) for name in dir(_project) if name.isupper()})

DATABASES: dict[str, Any] = copy.deepcopy(_project.DATABASES)
for _alias, _name in _given["databases"].items():
    DATABASES[_alias]["NAME"] = _name

JOBQUEUE: dict[str, Any] = _given["jobqueue"]
