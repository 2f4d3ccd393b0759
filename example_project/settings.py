"""Settings of the example project: SQLite in the file EXAMPLE_SQLITE, or the Postgres database EXAMPLE_POSTGRES."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

BASE_DIR = Path(__file__).resolve().parent.parent

SECRET_KEY = "only for the example: nothing here is secret"  # noqa: S105
DEBUG = os.environ.get("EXAMPLE_DEBUG", "1") == "1"
ALLOWED_HOSTS = ["localhost", "127.0.0.1"]
USE_TZ = True
TIME_ZONE = "UTC"
ROOT_URLCONF = "example_project.urls"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

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
    "example_project.shop",
    "example_project.capture",
    "example_project.chores",
    "example_project.knowledge",
]

MIDDLEWARE = [
    "jobqueue.middleware.embedded_worker",
    "jobqueue.middleware.job_origin",
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
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

SQLITE: dict[str, Any] = {
    "ENGINE": "django.db.backends.sqlite3",
    "NAME": os.environ.get("EXAMPLE_SQLITE") or BASE_DIR / "example.sqlite3",
    "OPTIONS": {
        "transaction_mode": "IMMEDIATE",
        "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
    },
}
POSTGRES: dict[str, Any] = {
    "ENGINE": "django.db.backends.postgresql",
    "NAME": os.environ.get("EXAMPLE_POSTGRES", ""),
}

DATABASES = {"default": {"CONN_MAX_AGE": 60} | (POSTGRES if POSTGRES["NAME"] else SQLITE)}

JOBQUEUE: dict[str, Any] = {
    # With EXAMPLE_EMBEDDED=1, runserver or gunicorn alone runs the jobs too.
    "EMBEDDED": os.environ.get("EXAMPLE_EMBEDDED") == "1",
    # The commands of the knowledge tool, which hooks enqueue. They run in the order in which they were typed, and the
    # queue accepts any number of them, but reports when 100 wait.
    "COMMANDS": ["learn", "summarise", "forget"],
    "QUEUES": {"knowledge": {"ordered": True, "capacity": 100}},
}

#: The files of the offline ports, beside the database that they belong to.
NETWORK = Path(os.environ.get("EXAMPLE_NETWORK") or BASE_DIR / f"{DATABASES['default']['NAME']}-network")

CAPTURE: dict[str, Any] = {
    # The token that senders of events must know. "" lets everyone in who reaches the server.
    "TOKEN": os.environ.get("EXAMPLE_CAPTURE_TOKEN", ""),
    # The assistant: "rules:", which needs no network, or the URL of a Messages API; and the reference to its key.
    "ASSISTANT": os.environ.get("EXAMPLE_ASSISTANT", "rules:"),
    "ASSISTANT_MODEL": os.environ.get("EXAMPLE_ASSISTANT_MODEL", "claude-sonnet-4-5"),
    "ASSISTANT_KEY_REF": "env:ANTHROPIC_API_KEY",
    # Learnings below this confidence aren't kept.
    "MIN_CONFIDENCE": 0.6,
    # The first one is for new uploads. The others are still accepted from jobs that were enqueued with them.
    "STORES": [os.environ.get("EXAMPLE_STORE", f"file:{NETWORK}/store")],
    "CHAINS": [
        {
            "rpc_url": os.environ.get("EXAMPLE_CHAIN", f"file:{NETWORK}/ledger.jsonl"),
            "contract_address": os.environ.get("EXAMPLE_CONTRACT", "0x0000000000000000000000000000000000000000"),
            "private_key_ref": os.environ.get("EXAMPLE_KEY_REF", "local:ledger"),
        }
    ],
    # Seconds to wait for a block before the next look.
    "CONFIRM_EVERY": float(os.environ.get("EXAMPLE_CONFIRM_EVERY", "5")),
    "KEYS": NETWORK / "keys",
    # The implementation for each scheme of an endpoint. The HTTP ones need the extra "example".
    "PORTS": {
        "assistant": {
            "rules": "example_project.capture.ports.assistant_rules.RuleAssistant",
            "http": "example_project.capture.ports.assistant_messages.MessagesAssistant",
            "https": "example_project.capture.ports.assistant_messages.MessagesAssistant",
        },
        "store": {
            "file": "example_project.capture.ports.store_files.FileStore",
            "http": "example_project.capture.ports.store_ipfs.IpfsStore",
            "https": "example_project.capture.ports.store_ipfs.IpfsStore",
        },
        "chain": {
            "file": "example_project.capture.ports.chain_ledger.LedgerChain",
            "http": "example_project.capture.ports.chain_ethereum.EthereumChain",
            "https": "example_project.capture.ports.chain_ethereum.EthereumChain",
        },
    },
}

CHORES: dict[str, Any] = {
    # The folder for the answers to prompts.
    "RESULTS": NETWORK / "results",
    # None: AWS itself.
    "AWS_ENDPOINT": os.environ.get("EXAMPLE_AWS_ENDPOINT"),
    "AWS_REGION": os.environ.get("EXAMPLE_AWS_REGION", "eu-central-1"),
}
