"""Tests of ``manage.py demo``: its output against the tables."""

from __future__ import annotations

import re
import shlex

import pytest
from django.contrib.auth.hashers import check_password

pytestmark = pytest.mark.timeout(240)

#: What follows from the orders and the conversations of a day: see ``trade.py`` and ``talk.py`` of the shop.
CONVERSATIONS, LEARNINGS = 30, 35
ACCEPTED, FOLLOW_UPS, DEAD = 303 + CONVERSATIONS, 117 + CONVERSATIONS + LEARNINGS, 6
TOTAL = ACCEPTED + FOLLOW_UPS


def numbers(said):
    """Read the sums: words to their number."""
    lines = re.findall(r"^   [ =+] +(-?\d+)  (.+)$", said, re.MULTILINE)
    return {words: int(number) for number, words in lines}


def commands(said):
    return re.findall(r"^   (EXAMPLE_.+)$", said, re.MULTILINE)


def count(site, where="1=1"):
    return site.rows(f"SELECT count(*) FROM job_queue WHERE {where}")[0][0]


@pytest.fixture(scope="module")
def said(site):
    """What the first run on each database said."""
    code, out, err = site.demo()
    assert (code, err) == (0, "")
    return out


def test_the_sums_are_those_of_the_table(site, said):
    assert numbers(said) == {
        f"jobs accepted: {ACCEPTED} by customers, {FOLLOW_UPS} by jobs that completed": TOTAL,
        "completed": TOTAL - DEAD,
        "dead letters, which wait for an operator": DEAD,
        "lost": 0,
        "jobs, orders and conversations left by the transactions that rolled back": 0,
        "bookings of stock, one for each of 100 orders": 100,
        f"uploads with a transaction each, one for each of {LEARNINGS} learnings": LEARNINGS,
        "messages that hold private data": 0,
    }
    held = dict(site.rows("SELECT status, count(*) FROM job_queue GROUP BY status"))
    assert held == {"completed": TOTAL - DEAD, "dead_letter": DEAD}
    assert count(site, "parent_id IS NOT NULL") == FOLLOW_UPS
    assert "The sums add up." in said


def test_a_rollback_leaves_neither_order_nor_job(site, said):
    assert "12 orders and 1 conversation rolled back after they had enqueued 37 jobs" in said
    assert site.rows("SELECT count(*) FROM conversations") == [(CONVERSATIONS,)]
    assert site.rows("SELECT count(*) FROM shop_order") == [(100,)]
    assert count(site, "type = 'ship_order'") == count(site, "type = 'book_stock'") == 100


def test_what_must_happen_once_happened_once_for_each_order(site, said):
    assert site.rows("SELECT count(*), count(DISTINCT order_id) FROM shop_stockmovement") == [(100, 100)]


def test_each_learning_is_published_once_and_nothing_private_is_kept(site, said):
    assert site.rows("SELECT count(*), count(DISTINCT chain_tx_hash) FROM uploads WHERE status = 'confirmed'") == [
        (LEARNINGS, LEARNINGS)
    ]
    assert site.rows("SELECT count(*) FROM learnings") == [(LEARNINGS,)]
    taken_out = dict(site.rows("SELECT category, count(*) FROM sanitization_log GROUP BY category"))
    assert taken_out == {"email": CONVERSATIONS, "phone": CONVERSATIONS, "card": CONVERSATIONS}
    assert site.rows("SELECT count(*) FROM messages WHERE content LIKE '%@%'") == [(0,)]


def test_every_kind_of_trouble_was_met(site, said):
    dead = dict(site.rows("SELECT type, count(*) FROM job_queue WHERE status = 'dead_letter' GROUP BY type"))
    assert dead == {"charge_card": 3, "ship_order": 2, "decode_photo": 1}
    endings = dict(site.rows("SELECT ending, count(*) FROM job_queue_attempt GROUP BY ending"))
    assert endings["failed"] == 11 + 3 + 2 * 2
    assert endings["snoozed"] == 1
    # The culprit took at least the import with it, and each of them ran alone after that.
    assert endings["crashed"] >= 3
    assert count(site, "crash_count > 0 AND type = 'import_catalogue' AND status = 'completed'") == 1
    assert count(site, "type = 'charge_card' AND attempts = 2 AND status = 'completed'") == 11


def test_progress_is_shown_while_the_worker_works(site, said):
    assert re.search(r"^   \d+ of \d+ ended: \d+ completed, \d+ dead letters; \d+ run, \d+ wait", said, re.MULTILINE)
    assert f"   {TOTAL} of {TOTAL} ended: {TOTAL - DEAD} completed, {DEAD} dead letters; 0 run, 0 wait" in said
    assert not set(said) & {"\x1b", "\r"}


def test_the_log_in_works_and_is_a_superusers(site, said):
    name, password = re.search(r"user (\S+), password (\S+)", said).groups()
    [(hashed, is_staff, is_superuser)] = site.rows(
        f"SELECT password, is_staff, is_superuser FROM auth_user WHERE username = '{name}'"
    )
    assert check_password(password, hashed)
    assert (bool(is_staff), bool(is_superuser)) == (True, True)


def test_the_dead_letter_runs_again_by_the_printed_commands(site, said):
    job_id, words = re.search(r"A dead letter\n   ship_order (\w+), after 2 attempts\n   (.+)\n", said).groups()
    assert re.fullmatch(r"ValueError: order demo-\w+-030 has no address", words)
    retry, work, serve = commands(said)
    assert shlex.split(retry)[-3:] == ["jobqueue", "retry", job_id]
    assert shlex.split(serve)[-1] == "runserver"
    site.write("UPDATE shop_order SET address = 'here' WHERE address = ''")
    for line in (retry, work):
        code, _, err = site.run(["sh", "-c", line])
        assert code == 0, err
    assert site.rows(f"SELECT status, result FROM job_queue WHERE id = '{job_id}'")[0][0] == "completed"


def test_a_second_run_adds_to_the_first(site, said):
    before, users = count(site), site.rows("SELECT count(*) FROM auth_user")
    code, again, err = site.demo("-v", "2")
    assert (code, err) == (0, "")
    assert numbers(again) == numbers(said)
    assert count(site) == before + TOTAL
    assert site.rows("SELECT count(*) FROM auth_user") == users
    assert again.count("Job completed: book_stock") == 100
