"""Tests of every page in a real browser: light and dark, wide and narrow, without errors of browser or axe-core."""

from __future__ import annotations

import pytest

from tests.browser import scene
from tests.browser.places import NARROW, SMALLEST, WIDE, ZOOMED, stretched, to_act, to_read
from tests.browser.serving import POLICY

#: What a page looks like is the same whichever database its words come from; the flows go through both.
SQLITE_ALONE = True

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
#: The rules of axe-core that have to do with colours.
COLOURS = ("color-contrast", "link-in-text-block")


@pytest.mark.timeout(600)
def test_every_page_can_be_used_in_every_look(open_tab, operator, shown):
    """In each theme and at each size. What is there between the widest and the smallest window is there in one of these
    too, because each narrower layout adds to the one before; so these two are searched for barriers."""
    tab, wrong = open_tab(operator), {}
    ways = {name: lambda one, at=at: one.open(at) for name, at in to_read(shown).items()} | to_act(shown)
    for name, go in ways.items():
        tab.turn("light")
        tab.resize(WIDE)
        go(tab)
        wrong[name] = tab.complaints() + tab.hidden_sideways() + tab.barriers()
        for size in (ZOOMED, NARROW, SMALLEST):
            tab.resize(size)
            wrong[f"{name}, {size}"] = tab.sideways()
        wrong[f"{name}, smallest"] = tab.barriers()
        tab.turn("dark")
        wrong[f"{name}, smallest, dark"] = tab.barriers(*COLOURS)
        tab.resize(WIDE)
        wrong[f"{name}, dark"] = tab.complaints() + tab.barriers(*COLOURS)
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


def test_a_narrow_list_keeps_what_its_columns_have(open_tab, operator, shown):
    tab = open_tab(operator)
    for page in ("jobs, filtered", "dead letters"):
        tab.open(to_read(shown)[page])
        for size in (ZOOMED, NARROW, SMALLEST):
            tab.resize(size)
            assert "payments" in seen(tab, "#result_list .jq-for-place"), (page, size)
            assert any("provider" in one for one in seen(tab, "#result_list :is(.jq-for-error, .jq-error)"))
            assert tab.ask("document.querySelector('#changelist-filter').getBoundingClientRect().top + scrollY") < 600


def test_a_narrow_table_has_its_figures_and_buttons_in_sight(open_tab, operator, shown):
    tab = open_tab(operator, size=NARROW)
    for page in ("dead letters by error", "queues"):
        tab.open(to_read(shown)[page])
        assert tab.ask(OUT_OF_SIGHT) == []
    for size in (NARROW, SMALLEST):
        tab.resize(size)
        assert tab.ask(COVERED) == []


def test_a_theme_that_one_chooses_looks_as_that_of_the_system(open_tab, operator, shown):
    of_system, of_choice, wrong = open_tab(operator), open_tab(operator), {}
    of_choice.open("/admin/")
    for theme, system in (("dark", "light"), ("light", "dark")):
        of_choice.ask(f"localStorage.setItem('theme', '{theme}')")
        of_system.turn(theme)
        of_choice.turn(system)
        for name in ("dashboard of the hour", "job, dead_letter", "queues"):
            for tab in (of_system, of_choice):
                tab.open(to_read(shown)[name])
            wrong[f"{name}, {theme}"] = sorted(set(of_system.ask(PAINT)) ^ set(of_choice.ask(PAINT)))
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
