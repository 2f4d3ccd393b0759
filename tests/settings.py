"""Settings of the test suite: SQLite, and Postgres if a server answers.

``JOBQUEUE_TEST_POSTGRES`` names another server; with ``none`` there is none.
"""

from __future__ import annotations

import importlib.util
import os
import secrets
import sys
import tempfile
from pathlib import Path

import django

from example_project import settings as example

# A run starts hundreds of processes that load the same modules. Where the shell forbids Python to write bytecode, each
# of them would compile all of it.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

SECRET_KEY = "for tests"
USE_TZ = True
TIME_ZONE = "Europe/Berlin"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
ROOT_URLCONF = "example_project.urls"

STATIC_URL = "static/"

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "dalf",
    "jobqueue",
    "jobqueue.contrib.commands",
    "jobqueue.contrib.email",
    "jobqueue.contrib.files",
    "jobqueue.contrib.webhooks",
    "example_project.capture",
    "example_project.chores",
    "tests.app",
    "tests.contrib.desk",
]

#: Whether ``django.tasks`` is there: in Django itself, or as the package django-tasks.
HAS_TASKS = django.VERSION >= (6,) or importlib.util.find_spec("django_tasks") is not None
if HAS_TASKS:
    INSTALLED_APPS += ["jobqueue.contrib.django_tasks", "tests.contrib.parcels"]
if django.VERSION < (6,) and HAS_TASKS:
    INSTALLED_APPS += ["django_tasks"]

_TASKS_BACKEND = "jobqueue.contrib.django_tasks.JobQueueBackend"
TASKS = {
    "default": {"BACKEND": _TASKS_BACKEND, "QUEUES": ["default", "parcels"]},
    "graded": {
        "BACKEND": _TASKS_BACKEND,
        "QUEUES": [],
        "OPTIONS": {
            "max_attempts": 3,
            "backoff": 0.01,
            "priorities": [90, 80, 0, -10],
            "tasks": {"tests.contrib.parcels.tasks.lose": {"max_attempts": 2, "aliases": ["parcels.lose_one"]}},
        },
    },
}

MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
]

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]

#: Removed when the session ends: databases, their logs, and the sockets of listeners. The processes of a run, and what
#: they start, have theirs within the folder of the first, so that nothing stays behind of one that was killed.
_WITHIN = os.environ.get("JOBQUEUE_TEST_FOLDER")
PRIVATE = Path(
    tempfile.mkdtemp(prefix="" if _WITHIN else "jobqueue-tests-", dir=_WITHIN)
)  # an address of a socket is short
os.environ.setdefault("JOBQUEUE_TEST_FOLDER", str(PRIVATE))

#: What the names of databases end with that this process makes, on a server that others use too.
OWN = f"{os.getpid()}_{secrets.token_hex(4)}"

SQLITE = {
    "ENGINE": "django.db.backends.sqlite3",
    "NAME": str(PRIVATE / "unused.sqlite3"),
    "OPTIONS": {
        "transaction_mode": "IMMEDIATE",
        "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
    },
    # A file, for an in-memory database has no second connection.
    "TEST": {"NAME": str(PRIVATE / "queue.sqlite3")},
}


def _postgres() -> tuple[dict[str, object] | None, str]:
    """Return the database settings of a Postgres that answers, or why there is none."""
    given = os.environ.get("JOBQUEUE_TEST_POSTGRES", "")
    if given == "none":
        return None, "JOBQUEUE_TEST_POSTGRES is none"
    try:
        import psycopg
        from psycopg.conninfo import conninfo_to_dict
    except ImportError:
        return None, "psycopg is not installed"
    tried = [given] if given else ["dbname=postgres", "host=127.0.0.1 user=postgres dbname=postgres"]
    for conninfo in tried:
        try:
            psycopg.connect(conninfo, connect_timeout=3).close()
        except psycopg.OperationalError as error:
            why = str(error).strip().splitlines()[0]
            continue
        values = conninfo_to_dict(conninfo)
        names = {"host": "HOST", "port": "PORT", "user": "USER", "password": "PASSWORD", "dbname": "NAME"}
        return {
            "ENGINE": "django.db.backends.postgresql",
            **{names[key]: str(value) for key, value in values.items() if key in names},
            "TEST": {"NAME": f"test_jobqueue_{OWN}"},
        }, ""
    return None, f"none answers ({why})"


POSTGRES, WHY_NO_POSTGRES = _postgres()

os.environ["XDG_RUNTIME_DIR"] = str(PRIVATE)

DATABASES = {"default": SQLITE} | ({"postgres": POSTGRES} if POSTGRES else {})

CAPTURE = example.CAPTURE
CHORES = example.CHORES
