"""Tests of every page in a real browser: light and dark, wide and narrow, without errors of browser or axe-core."""

from __future__ import annotations

import pytest

from tests.browser import scene
from tests.browser.places import NARROW, SMALLEST, WIDE, ZOOMED, stretched, to_act, to_read
from tests.browser.serving import POLICY
from tests.conftest import ON_SQLITE

#: What a page looks like is the same whichever database its words come from; the flows go through both.
pytestmark = ON_SQLITE

#: What a page offers to those who may change something. Django's own form around a list is there for everybody, and so
#: are a reader's own saved searches.
BUTTONS = (
    "form[method=post]:not(.jq-saved form) :is(button:not([type=button]), [type=submit]), .jq-verbs, .actions, "
    "a[href*='/pause/'], .addlink"
)
OFFERED = f"Array.from(document.querySelector('#content').querySelectorAll({BUTTONS!r}), (one) => one.outerHTML)"


#: The colours of all that is on a page, and how thick the borders of its buttons are.
PAINT = """Array.from(document.querySelectorAll("#content *"), (one) => {
    const style = getComputedStyle(one);
    const colours = [style.color, style.backgroundColor, style.borderTopColor, style.fill, style.stroke];
    return `${one.tagName} ${one.getAttribute("class")} ${colours}`;
})"""
BORDERS = "Array.from(document.querySelectorAll('#content .button'), (one) => getComputedStyle(one).borderTopWidth)"
#: The heads of the columns of a list that are to be seen.
HEADS = """Array.from(document.querySelectorAll("#result_list th .text"))
    .filter((one) => one.offsetParent && one.textContent.trim()).map((one) => one.textContent.trim())"""
#: The buttons of tables that stand beside what of their table is to be seen.
OUT_OF_SIGHT = """Array.from(document.querySelectorAll(".jq-wide .button"))
    .filter((one) => one.getBoundingClientRect().right > innerWidth).map((one) => one.textContent)"""
#: The cells of tables of which something else covers the middle.
COVERED = """Array.from(document.querySelectorAll(".jq-wide td, .jq-wide th"))
    .filter((one) => one.textContent.trim() && one.checkVisibility()).filter((one) => {
        one.scrollIntoView({block: "center", inline: "center"});
        const box = one.getBoundingClientRect();
        const top = document.elementFromPoint(box.left + box.width / 2, box.top + box.height / 2);
        return top && !one.contains(top) && !top.contains(one);
    }).map((one) => one.textContent.trim())"""
#: What axe-core goes by, in each theme: all its rules, and those that have to do with colours.
RULES = {"light": (), "dark": ("color-contrast", "link-in-text-block")}


@pytest.mark.timeout(300)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_page_can_be_used_in_every_look(open_tab, operator, shown, theme):
    tab, wrong = open_tab(operator, theme), {}
    ways = {name: lambda one, at=at: one.open(at) for name, at in to_read(shown).items()} | to_act(shown)
    for name, go in ways.items():
        tab.resize(WIDE)
        go(tab)
        wrong[name] = tab.complaints() + tab.hidden_sideways() + tab.barriers(*RULES[theme])
        tab.resize(NARROW)
        wrong[f"{name}, narrow"] = tab.complaints() + tab.sideways() + tab.barriers(*RULES[theme])
    assert {name: what for name, what in wrong.items() if what} == {}


def test_the_list_of_jobs_has_room_for_its_columns(open_tab, operator, shown):
    tab = open_tab(operator)
    tab.open(to_read(shown)["jobs"])
    assert tab.ask(HEADS) == ["Job", "Status", "Queue", "Age", "Error"]
    tab.resize(NARROW)
    assert tab.ask(HEADS) == ["Job", "Status", "Age"]


def seen(tab, selector):
    """The texts of such elements that are to be seen."""
    return tab.ask(
        f"Array.from(document.querySelectorAll({selector!r})).filter((one) => one.checkVisibility())"
        ".map((one) => one.textContent.trim())"
    )


@pytest.mark.parametrize("size", [ZOOMED, NARROW, SMALLEST])
@pytest.mark.parametrize("page", ["jobs, filtered", "dead letters"])
def test_a_narrow_list_keeps_what_its_columns_have(open_tab, operator, shown, size, page):
    tab = open_tab(operator, size=size)
    tab.open(to_read(shown)[page])
    assert "payments" in seen(tab, "#result_list .jq-for-place")
    assert any("provider" in one for one in seen(tab, "#result_list :is(.jq-for-error, .jq-error)"))
    assert tab.ask("document.querySelector('#changelist-filter').getBoundingClientRect().top + scrollY") < 600


@pytest.mark.parametrize("size", [NARROW, SMALLEST])
def test_nothing_lies_upon_the_figures_of_a_queue(open_tab, operator, shown, size):
    tab = open_tab(operator, size=size)
    tab.open(to_read(shown)["queues"])
    assert tab.ask(COVERED) == []


@pytest.mark.timeout(300)
@pytest.mark.parametrize("size", [SMALLEST, ZOOMED])
def test_every_page_can_be_used_when_it_is_enlarged(open_tab, operator, shown, size):
    tab, wrong = open_tab(operator, size=size), {}
    ways = {name: lambda one, at=at: one.open(at) for name, at in to_read(shown).items()} | to_act(shown)
    for name, go in ways.items():
        tab.resize(WIDE)
        go(tab)
        tab.resize(size)
        wrong[name] = tab.complaints() + tab.sideways() + tab.barriers()
    assert {name: what for name, what in wrong.items() if what} == {}


@pytest.mark.parametrize("page", ["queues", "dead letters by error"])
def test_a_queue_is_paused_and_an_error_retried_without_scrolling_there(open_tab, operator, shown, page):
    tab = open_tab(operator, size=NARROW)
    tab.open(to_read(shown)[page])
    assert tab.ask(OUT_OF_SIGHT) == []


@pytest.mark.parametrize(("theme", "system"), [("dark", "light"), ("light", "dark")])
def test_a_theme_that_one_chooses_looks_as_that_of_the_system(open_tab, operator, shown, theme, system):
    of_system, of_choice, wrong = open_tab(operator, theme), open_tab(operator, system), {}
    of_choice.open("/admin/")
    of_choice.ask(f"localStorage.setItem('theme', '{theme}')")
    for name in ("dashboard of the hour", "job, dead_letter", "queues"):
        for tab in (of_system, of_choice):
            tab.open(to_read(shown)[name])
        wrong[name] = sorted(set(of_system.ask(PAINT)) ^ set(of_choice.ask(PAINT)))
    assert {name: what for name, what in wrong.items() if what} == {}


def test_forced_colours_leave_buttons_that_look_like_buttons(open_tab, operator, shown):
    tab = open_tab(operator, "forced")
    for name in ("dashboard of the hour", "job, dead_letter", "queues", "dead letters of one error"):
        tab.open(to_read(shown)[name])
        assert set(tab.ask(BORDERS)) == {"1px"}, name


def test_the_longest_names_do_not_push_a_page_out_of_a_telephone(open_tab, operator, queue):
    tab, wrong = open_tab(operator, size=NARROW), {}
    for name, at in stretched(scene.stretch(queue)).items():
        tab.open(at)
        wrong[name] = tab.complaints() + tab.sideways()
    assert {name: what for name, what in wrong.items() if what} == {}


def test_who_may_only_look_sees_every_page_and_no_button(open_tab, reader, shown):
    tab, wrong = open_tab(reader), {}
    for name, at in to_read(shown).items():
        tab.open(at)
        wrong[name] = tab.complaints() + tab.ask(OFFERED)
    assert {name: what for name, what in wrong.items() if what} == {}


BROKEN = """<!doctype html><html lang="en"><title>Broken</title><main><h1 style="color: red">Broken</h1>
<p>Letters <button></button></p><script>document.title = "run"</script><img src="/nowhere.png" alt="">
<table><tr><td>{wide}</td></tr></table></main></html>"""


def test_what_is_wrong_with_a_page_would_be_noticed(open_tab, operator, site):
    tab = open_tab(operator, size=NARROW)
    tab.pretend("/broken/", BROKEN.format(wide="w" * 200), **{"Content-Security-Policy": POLICY})
    tab.open("/broken/")
    told = "\n".join(tab.complaints())
    assert "inline script violates" in told
    assert "inline style violates" in told
    assert "404" in told
    assert ["pixels wide" in one or "cut off: T" in one for one in tab.sideways()][:2] == [True, True]
    assert "button-name" in "\n".join(tab.barriers())
    tab.ask("setTimeout(() => { throw new Error('thrown') })")
    assert "thrown" in "\n".join(tab.complaints())
