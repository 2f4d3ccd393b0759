"""A real browser: Chromium tabs, actions in a reader's words, and a page's problems."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from copy import copy
from pathlib import Path
from typing import Any, ParamSpec, TypeVar
from urllib.parse import urlsplit

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import BrowserContext, Locator, Page, Request, expect, sync_playwright

from tests.browser.places import WIDE

P = ParamSpec("P")
T = TypeVar("T")

#: Long, for the machine may be busy; nobody waits for it unless something is wrong.
PATIENCE = 30_000
GRAVE = {"serious", "critical"}

_OPTIONS = [
    "--no-sandbox",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-gpu",
]
#: Names what lies to the right of the window and cannot be scrolled to in a box of its own.
_CUT_OFF = """
() => {
    const edge = document.documentElement.clientWidth;
    const scrolls = (one) => one && one !== document.body && one.id !== "content"
        && (/auto|scroll/.test(getComputedStyle(one).overflowX) || scrolls(one.parentElement));
    return Array.from(document.querySelectorAll("body *"))
        .filter((one) => one.checkVisibility({visibilityProperty: true}) && !one.closest(".visually-hidden"))
        .filter((one) => one.getBoundingClientRect().width > 1
            && one.getBoundingClientRect().right > edge + 1 && !scrolls(one.parentElement))
        .map((one) => `${one.tagName} ${one.className} ${one.textContent.trim().slice(0, 40)}`)
        .slice(0, 5);
}
"""
_SCROLLED = """
() => Array.from(document.querySelectorAll("#content *"))
    .filter((one) => one.checkVisibility() && one.scrollWidth > one.clientWidth + 1
        && /auto|scroll/.test(getComputedStyle(one).overflowX))
    .map((one) => `${one.tagName} ${one.className}: ${one.scrollWidth} of ${one.clientWidth}`)
"""


class Chromium:
    """One browser. It has a thread of its own: Playwright runs an event loop, in which Django would let nobody use the
    database, and no test run its own."""

    def __init__(self, path: str) -> None:
        self._thread = ThreadPoolExecutor(1, "browser")
        self.do(self._launch, path)

    def do(self, work: Callable[P, T], *args: P.args, **named: P.kwargs) -> T:
        """Have the thread do something, and return what it returns or raise what it raises."""
        return self._thread.submit(work, *args, **named).result()

    def _launch(self, path: str) -> None:
        self._playwright = sync_playwright().start()
        self._browser = self._playwright.chromium.launch(executable_path=path, args=_OPTIONS)
        expect.set_options(timeout=PATIENCE)

    def tab(self, site: str, session: str, theme: str = "light", size: tuple[int, int] = WIDE) -> Tab:
        """Open a tab for somebody who is signed in."""
        return Tab(self, self.do(self._context, site, session, theme, size), site)

    def _context(self, site: str, session: str, theme: str, size: tuple[int, int]) -> BrowserContext:
        width, height = size
        context = self._browser.new_context(
            base_url=site,
            viewport={"width": width, "height": height},
            color_scheme="dark" if theme == "dark" else "light",
            forced_colors="active" if theme == "forced" else "none",
            reduced_motion="reduce",
            locale="en-GB",
            timezone_id="Europe/Berlin",
            permissions=["clipboard-read", "clipboard-write"],
        )
        context.set_default_timeout(PATIENCE)
        context.add_cookies([{"name": "sessionid", "value": session, "url": site}])
        return context

    def close(self) -> None:
        self.do(self._browser.close)
        self.do(self._playwright.stop)
        self._thread.shutdown()


class Tab:
    """One page at a time; what the browser asks for and complains of is kept, with that of tabs opened from it."""

    def __init__(self, chromium: Chromium, context: BrowserContext, site: str) -> None:
        self._chromium, self._context, self.site = chromium, context, site
        self._complaints: list[str] = []
        self._requests: list[str] = []
        self._do(self._open_page)

    def _open_page(self) -> None:
        self._page = self._context.new_page()
        self._listen(self._page)

    def _do(self, work: Callable[P, T], *args: P.args, **named: P.kwargs) -> T:
        return self._chromium.do(work, *args, **named)

    def close(self) -> None:
        """Close it, and those that were opened from it."""
        self._do(self._context.close)

    @contextmanager
    def elsewhere(self, path: str) -> Iterator[Tab]:
        """Open a page in another tab, while this one stays open."""
        other = copy(self)
        other._do(other._open_page)
        other.open(path)
        yield other
        self._do(other._page.close)

    # What the browser complains of

    def _listen(self, page: Page) -> None:
        def add(what: str) -> None:
            self._complaints.append(f"{urlsplit(page.url).path}: {what}")

        def fails(request: Request) -> None:
            # A page that is left while it asks for news breaks its question off.
            if not (request.resource_type == "fetch" and request.failure == "net::ERR_ABORTED"):
                add(f"{request.url} failed: {request.failure}")

        page.on("console", lambda message: add(message.text) if message.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: add(f"uncaught {error}"))
        page.on("requestfailed", fails)
        page.on("response", lambda answer: add(f"{answer.status} {answer.url}") if answer.status >= 400 else None)
        page.on("dialog", lambda dialog: (add(f"a dialog: {dialog.message}"), dialog.dismiss()))
        page.on("request", lambda request: self._requests.append(urlsplit(request.url).path))

    def complaints(self) -> list[str]:
        """Take what was complained of since the last time."""
        self._do(self._page.evaluate, "1")  # what is on its way comes before the answer
        taken, self._complaints[:] = list(self._complaints), []
        return taken

    def pretend(self, path: str, page: str, **headers: str) -> None:
        """Have an address lead to a page that is given."""
        answer = {"body": page, "content_type": "text/html", "headers": headers}
        self._do(self._page.route, f"{self.site}{path}", lambda route: route.fulfill(**answer))

    def asked(self, part: str) -> int:
        """Count the addresses with such a part that were asked for."""
        self._do(self._page.evaluate, "1")
        return sum(part in path for path in self._requests)

    # Doing

    def open(self, path: str) -> None:
        self._do(self._page.goto, path)

    def press(self, name: str, within: str = "main") -> None:
        """Press a button by its whole name."""
        self._do(lambda: self._part(within).get_by_role("button", name=name, exact=True).click())

    def follow(self, name: str, within: str = "main") -> None:
        """Follow a link by its whole name."""
        self._do(lambda: self._part(within).get_by_role("link", name=name, exact=True).first.click())

    def fill(self, label: str, value: str) -> None:
        self._do(lambda: self._page.get_by_label(label, exact=True).fill(value))

    def type_into(self, label: str, text: str) -> None:
        """Type, letter by letter."""
        self._do(lambda: self._page.get_by_label(label, exact=True).press_sequentially(text))

    def choose(self, label: str, option: str) -> None:
        self._do(lambda: self._page.get_by_label(label).select_option(label=option))

    def tick(self, selector: str) -> None:
        self._do(lambda: self._page.locator(selector).first.check())

    def click(self, selector: str) -> None:
        self._do(lambda: self._page.locator(selector).first.click())

    def strike(self, key: str) -> None:
        """Press a key where the focus is."""
        self._do(self._page.keyboard.press, key)

    def walk_to(self, name: str, most: int = 80) -> None:
        """Go from one place to the next by keyboard, until the focus is on what has this name."""
        for _step in range(most):
            self.strike("Tab")
            if self.ask("document.activeElement.textContent.trim()") == name:
                return
        raise AssertionError(f"{name!r} is not reached by {most} steps with the keyboard")

    def resize(self, size: tuple[int, int]) -> None:
        self._do(self._page.set_viewport_size, {"width": size[0], "height": size[1]})

    def turn(self, theme: str) -> None:
        """Have the system ask for light or dark pages, and wait until their colours have changed."""
        self._do(lambda: self._page.emulate_media(color_scheme="dark" if theme == "dark" else "light"))
        self.ask("document.getAnimations().forEach((one) => one.finish())")

    def hold_time(self) -> None:
        """Have no time pass in the pages that are opened from now on, but by ``pass_time``."""
        self._do(self._page.clock.install, time=0)
        self._do(self._page.clock.pause_at, 1)

    def pass_time(self, seconds: float) -> None:
        self._do(self._page.clock.run_for, int(seconds * 1000))

    # Seeing: each waits until it is so

    def _part(self, within: str) -> Locator:
        return self._page.locator(within)

    def sees(self, text: str, within: str = "main") -> None:
        self._do(lambda: expect(self._part(within)).to_contain_text(text))

    def reads(self, text: str, selector: str) -> None:
        """See this text and no other."""
        self._do(lambda: expect(self._part(selector)).to_have_text(text))

    def misses(self, text: str, within: str = "main") -> None:
        self._do(lambda: expect(self._part(within)).not_to_contain_text(text))

    def sees_count(self, selector: str, count: int) -> None:
        self._do(lambda: expect(self._part(selector)).to_have_count(count))

    def is_hidden(self, selector: str) -> None:
        self._do(lambda: expect(self._part(selector)).to_be_hidden())

    def has_focus(self, selector: str) -> None:
        self._do(lambda: expect(self._part(selector)).to_be_focused())

    def ask(self, script: str) -> Any:
        return self._do(self._page.evaluate, script)

    @property
    def path(self) -> str:
        return urlsplit(self.ask("location.href")).path

    @contextmanager
    def staying(self) -> Iterator[None]:
        """See to it that the page is not loaded anew meanwhile."""
        self.ask("document.untouched = true")
        yield
        assert self.ask("document.untouched"), "the page was loaded anew"

    # What is wrong with a page

    def sideways(self) -> list[str]:
        """Name what makes the page wider than its window."""
        width, room = self.ask("(({scrollWidth, clientWidth}) => [scrollWidth, clientWidth])(document.documentElement)")
        wide = [f"{width} pixels wide, where there are {room}"] if width > room else []
        return [*wide, *(f"cut off: {one}" for one in self.ask(_CUT_OFF))]

    def hidden_sideways(self) -> list[str]:
        """Name the boxes of a page that have to be scrolled sideways."""
        return [f"to be scrolled: {one}" for one in self.ask(_SCROLLED)]

    def barriers(self, *rules: str) -> list[str]:
        """Have axe-core look at the page; name what it calls serious or critical. Without ``rules`` it goes by all."""
        return self._do(self._barriers, rules)

    def _barriers(self, rules: tuple[str, ...]) -> list[str]:
        if not self._page.evaluate("'axe' in window"):
            self._page.evaluate(Axe().axe_script)
        # What it loads beforehand, for a rule about turned screens, it would put into an element that is forbidden.
        given = {"resultTypes": ["violations"], "preload": False}
        only = {"runOnly": {"type": "rule", "values": list(rules)}} if rules else {}
        found = self._page.evaluate("given => axe.run(document, given)", given | only)
        return [
            f"{one['id']}: {node['html'][:300]} {node['failureSummary']}"
            for one in found["violations"]
            if one["impact"] in GRAVE
            for node in one["nodes"][:3]
        ]

    def picture(self, file: Path) -> None:
        """Write down what the window shows."""
        self._do(self._page.screenshot, path=file, animations="disabled", caret="hide")
