"""Tests of two pages, whose steps are followed in a project made by Django's ``startproject``."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import django
import pytest

from jobqueue.contrib.webhooks.signing import verify
from tests.contrib.post_office import delivering
from tests.contrib.receiver import receiving
from tests.docs.pages import DOCS, ROOT, blocks

SETTINGS = "# settings.py\n"
SEND = "from django.core.mail import send_mail; send_mail('Hello', 'World', 'us@shop.example', ['you@x.example'])"


class Project:
    """A new project, and what is typed in its folder."""

    def __init__(self, folder):
        self.folder = folder
        unwanted = ("DJANGO_", "JOBQUEUE_")
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith(unwanted)}
        self.environment |= {"PYTHONPATH": str(ROOT), "XDG_RUNTIME_DIR": str(folder)}
        self.type("-m", "django", "startproject", "shop", ".")
        (folder / "shop" / "__init__.py").touch()

    def set(self, text):
        """Write settings as a page shows them; its dots stand for the apps that are there already."""
        apps = "\n    *INSTALLED_APPS,"
        with (self.folder / "shop" / "settings.py").open("a") as file:
            file.write(text.removeprefix(SETTINGS).replace("\n    # ...", apps))

    def add(self, text):
        """Write the module that a block names in its first line."""
        name, body = text.removeprefix("# ").split("\n", 1)
        (self.folder / name).write_text(body)

    def type(self, *words):
        done = subprocess.run(
            [sys.executable, *words], cwd=self.folder, env=self.environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{words}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def manage(self, *words):
        return self.type("manage.py", *words)

    def run(self, code):
        return self.manage("shell", "-v", "0", "-c", code)


@pytest.fixture
def project(tmp_path):
    return Project(tmp_path)


def python(page):
    return [text for kind, text in blocks(DOCS / "how-to" / page) if kind == "python"]


def of_this_release(page):
    """The page's settings for the installed Django: with MAILERS, or without them."""
    several = [text for text in python(page) if text.startswith(SETTINGS)]
    (found,) = [text for text in several if ("MAILERS" in text) is (django.VERSION >= (6, 1))]
    return found


def test_email(project):
    with delivering() as office:
        text = of_this_release("email.md")
        # The page's server is the only thing that differs.
        project.set(text.replace('"host": "mail.shop.example"', f'"host": "127.0.0.1", "port": {office.port}'))
        if "EMAIL_HOST" in text:
            project.set(f'EMAIL_HOST, EMAIL_PORT = "127.0.0.1", {office.port}\n')
        project.manage("check")
        project.manage("migrate", "-v", "0")
        project.run(SEND)
        assert office.letters == []
        project.manage("runworker", "--drain")
        ((sender, recipients, message),) = office.letters
    assert (sender, recipients, message["Subject"]) == ("us@shop.example", ["you@x.example"], "Hello")


def test_webhooks(project):
    settings, receivers, orders, *_ = python("webhooks.md")
    project.set(settings)
    project.add(receivers)
    project.add(orders)
    project.manage("check")
    project.manage("migrate", "-v", "0")
    with receiving() as receiver:
        project.set('JOBQUEUE = {"WEBHOOK_NETWORKS": ["127.0.0.0/8"]}\n')
        said = project.run(
            "from shop.receivers import register\n"
            f"print(*(register('{receiver.url()}').secret for _ in range(2)))\n"
            "from shop.orders import pay\n"
            "pay(7)"
        )
        project.manage("runworker", "--drain")
        secrets = re.findall(r"whsec_\S+", said)
        assert len({verify(secrets, one.headers, one.body) for one in receiver.requests}) == len(secrets) == 2
