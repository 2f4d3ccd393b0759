"""Fixtures of the browser tests: the browser, its users and their data."""

from __future__ import annotations

import pytest

from jobqueue.admin.lists.jobs import ReadingJobs
from jobqueue.handlers.registry import registry
from tests.admin.conftest import ALL, sign_in
from tests.browser import scene, shop
from tests.requirements import BROWSER, CHROMIUM
from tests.worker.conftest import jobs, ledger, start_worker

__all__ = ["jobs", "ledger", "sign_in", "start_worker"]


@pytest.fixture(scope="session")
def chromium():
    """The browser, started once; skips where there is none."""
    if BROWSER.missing:
        pytest.skip(BROWSER.reason)
    from tests.browser.chromium import Chromium

    started = Chromium(CHROMIUM)
    yield started
    started.close()


@pytest.fixture
def site(queue, settings):
    """The address under which the test project is served, from each database in turn."""
    from tests.browser.serving import HOST, serving

    settings.ALLOWED_HOSTS = [*settings.ALLOWED_HOSTS, HOST]
    with serving() as address:
        yield address


@pytest.fixture
def open_tab(chromium, site):
    """A function that opens a tab for a visitor; at the end no browser may have complained of anything."""
    opened = []

    def open_one(visitor, *given, **look):
        tab = chromium.tab(site, visitor.client.cookies["sessionid"].value, *given, **look)
        opened.append(tab)
        return tab

    yield open_one
    complaints = []
    for tab in opened:
        complaints += tab.complaints()
        tab.close()
    assert complaints == []


@pytest.fixture
def operator(queue, sign_in):
    """Someone who may do everything."""
    visitor = sign_in(*ALL, "pause_queue", "control_worker")
    visitor.user.username = "night-shift"
    visitor.user.save()
    return visitor


@pytest.fixture
def reader(queue, sign_in):
    """Someone who may look, and nothing else."""
    return sign_in("view_job")


@pytest.fixture
def tab(open_tab, operator):
    """A tab of somebody who may do everything."""
    return open_tab(operator)


@pytest.fixture
def shop_alone(monkeypatch):
    """Have no types of jobs but those of a shop."""
    monkeypatch.setattr(registry, "_types", shop.alone())
    shop.register()


@pytest.fixture
def shown(queue, shop_alone, monkeypatch):
    """The jobs of a shop on a busy day."""
    monkeypatch.setattr(ReadingJobs, "list_per_page", 25)  # so that there is something to be paged through
    return scene.fill(queue)
