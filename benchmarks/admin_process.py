"""The process that measures the admin: it fills the table and prints the time of each page."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from importlib import import_module
from typing import Any

from benchmarks.databases import Place
from benchmarks.workers import end_in_order

APPS = (
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "dalf",
)
SETTINGS: dict[str, Any] = {
    "ALLOWED_HOSTS": ["testserver"],
    "ROOT_URLCONF": "benchmarks.admin_urls",
    "STATIC_URL": "static/",
    "MIDDLEWARE": [
        "django.contrib.sessions.middleware.SessionMiddleware",
        "django.middleware.common.CommonMiddleware",
        "django.middleware.csrf.CsrfViewMiddleware",
        "django.contrib.auth.middleware.AuthenticationMiddleware",
        "django.contrib.messages.middleware.MessageMiddleware",
    ],
    "TEMPLATES": [
        {
            "BACKEND": "django.template.backends.django.DjangoTemplates",
            "APP_DIRS": True,
            "OPTIONS": {
                "context_processors": [
                    "django.template.context_processors.request",
                    "django.contrib.auth.context_processors.auth",
                    "django.contrib.messages.context_processors.messages",
                ]
            },
        }
    ],
}


def main() -> None:
    """Do what the line on standard input requests."""
    end_in_order()
    asked = json.loads(sys.stdin.readline())
    place = Place(**asked["place"])
    place.configure(APPS, **SETTINGS)
    looking = import_module("benchmarks.looking")  # not before the apps are ready
    for figure in looking.figures(place.vendor, asked["count"], asked["times"]):
        print(json.dumps(asdict(figure)), flush=True)


if __name__ == "__main__":
    main()
