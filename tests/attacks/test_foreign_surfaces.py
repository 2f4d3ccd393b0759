"""Tests of foreign rows on every surface: API, commands, pages and relay answer, or refuse with a message.

What is tried here is a sample that is the same each time; ``python -m tests.attacks`` tries everything, for hours.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from django.contrib.auth.models import Permission

from tests.attacks import forging
from tests.attacks.drains import forge, put_ordinary
from tests.attacks.hostile import LARGE, TABLES, job_row, vandal
from tests.attacks.relays import relay_all
from tests.attacks.surfaces import found_in, troubles

#: How many rows each surface is tried with.
SHOWN, WRITTEN, RELAYED = 60, 25, 300


@pytest.fixture
def visitor(operator):
    """Someone who may do everything in the admin."""
    operator.user.user_permissions.add(*Permission.objects.filter(codename__endswith="_schedule"))
    return operator.client


def singles(*states):
    """Every row with one hostile value, in an order that is none: a part of it is a sample."""
    return [
        forging.single(*one)
        for one in forging.every_single()
        if one[2] not in LARGE and (not states or one[3] in states)
    ]


def stored(foreign, rows, most):
    """Forge rows until so many are stored that a job's page may be asked for; other tables take all of theirs."""
    foreign.clear()
    found = {}
    for row in rows:
        found |= forge(foreign, [row])[0]
        if len(found) == most:
            break
    assert len(found) == most
    return found


def test_lists_and_searches_answer_whatever_is_among_the_rows(foreign, visitor):
    forge(foreign, singles("queued", "held", "dead_letter", ""))
    assert troubles(visitor, (), "briefly") == []


def test_what_shows_a_job_shows_each(foreign, visitor):
    rows = [one for one in singles() if one.table == "job_queue"]
    stored(foreign, rows, SHOWN)
    assert troubles(visitor, found_in(foreign), "showing") == []


def test_what_changes_jobs_changes_them_or_says_why_not(foreign, visitor):
    rows = [one for one in singles() if one.table == "job_queue"][SHOWN:]
    stored(foreign, rows, WRITTEN)
    assert troubles(visitor, found_in(foreign), "writing") == []


def test_several_values_at_once(foreign, visitor):
    chance = Random(0)
    rows = [row for _ in range(20) for row in forging.some(chance)]
    forge(foreign, rows)
    assert troubles(visitor, found_in(foreign, 5), "reading") == []


#: Rows of one user: the columns that say so are tried with all tables, the others where the user is the one who asks.
OF_A_USER = ("job_queue_order", "job_queue_saved_search")


def test_every_table_but_the_jobs_may_hold_anything(foreign, visitor):
    foreign.store("job_queue", job_row())
    rows = [one for one in singles("") if one.table in TABLES]
    forge(foreign, [one for one in rows if one.table not in OF_A_USER or one.name.startswith("user_id")])
    assert troubles(visitor, found_in(foreign), "reading") == []


def test_questions_and_saved_searches_of_a_user_may_hold_anything(foreign, visitor, operator):
    mine = {"user_id": str(operator.user.pk)}
    rows = [one for one in singles("") if one.table in OF_A_USER and not one.name.startswith("user_id")]
    asked = {"job_queue_order": {"state": "asked", "given_at": None}}
    forge(foreign, [replace(one, row={**mine, **_unless_forged(one, asked.get(one.table, {}))}) for one in rows])
    assert troubles(visitor, (), "asking") == []


def _unless_forged(forgery, changes):
    column = forgery.name.partition(" = ")[0]
    own = {name: value for name, value in forgery.row.items() if name != "user_id"}
    return own | {name: value for name, value in changes.items() if name != column}


def test_a_relay_brings_over_what_is_behind_any_row(foreign, alias, settings):
    there = {"default": "postgres", "postgres": "default"}[alias]
    settings.JOBQUEUE = {"DATABASE": alias, "RELAY_TO": there}
    rows = [one for one in singles("queued") if one.table == "job_queue"]
    with vandal(there) as other:
        other.clear()
        stored(foreign, rows, RELAYED)
        ordinary = put_ordinary()
        assert relay_all() == ""
        assert set(ordinary) <= {row["id"] for row in other.jobs().values()}
        assert relay_all() == ""
        other.clear()
