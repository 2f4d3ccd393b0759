"""The settings of the tests, with the database under proof as the default one."""

from __future__ import annotations

import os

from tests import settings as tested

globals().update({name: value for name, value in vars(tested).items() if name.isupper()})

INSTALLED_APPS = [*tested.INSTALLED_APPS, "tests.due_work"]
DATABASES = {"default": tested.DATABASES["postgres" if os.environ["DUE_WORK_DATABASE"] == "postgres" else "default"]}
