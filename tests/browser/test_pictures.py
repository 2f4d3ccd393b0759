"""The pictures for the documentation. JOBQUEUE_TEST_SCREENSHOTS names their folder."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.browser import scene
from tests.browser.places import NARROW, WIDE, address
from tests.conftest import ON_SQLITE

#: Each page for readers of light and of dark pages, and as a telephone shows it.
LOOKS = {"light": ("light", WIDE), "dark": ("dark", WIDE), "narrow": ("light", NARROW)}
#: A page of the documentation that shows some of them is to be loaded soon.
LARGEST = 200_000


def ways(found):
    """By the name of its picture, how to get to a page."""
    group = address("deadletter_by_error", fingerprint=found.fingerprint)
    opened = {
        "dashboard": address("dashboard_changelist"),
        "jobs": address("job_changelist"),
        "job": address("job_change", found.dead_letter),
        "dead-letters": address("deadletter_changelist"),
        "dead-letters-of-one-error": group,
        "queues": address("queue_changelist"),
        "workers": address("worker_changelist"),
    }
    return {
        **{name: lambda tab, at=at: tab.open(at) for name, at in opened.items()},
        "retry-all": lambda tab: _ask_for_all(tab, group),
        "order": lambda tab: (tab.press("Retry 20 jobs"), tab.sees("queued again", ".messagelist")),
    }


def _ask_for_all(tab, group):
    """Fill the question in, and leave it open."""
    tab.open(group)
    tab.press("Retry all")
    tab.fill("At most … a minute:", "10")
    tab.fill("Why:", "the payment provider is back")


@pytest.fixture
def folder(tmp_path):
    """Where pictures go: without the setting they are made, and thrown away."""
    made = Path(os.environ.get("JOBQUEUE_TEST_SCREENSHOTS") or tmp_path)
    made.mkdir(parents=True, exist_ok=True)
    return made


@ON_SQLITE
def test_each_page_has_its_picture(open_tab, operator, queue, shop_alone, folder):
    found = scene.fill(queue, minutes=1)
    tab = open_tab(operator)
    for name, go in ways(found).items():
        tab.resize(WIDE)
        go(tab)
        for look, (theme, size) in LOOKS.items():
            tab.turn(theme)
            tab.resize(size)
            file = folder / f"{name}-{look}.png"
            tab.picture(file)
            assert 0 < file.stat().st_size < LARGEST
