"""Tests of the pipeline from an HTTP event to a confirmed upload, with a real web server and worker."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from example_project.capture.models import new_id
from example_project.capture.ports.store import cid_of

pytestmark = pytest.mark.timeout(180)

#: None of this may be found anywhere but in the sender's hands.
PRIVATE = {
    "anna.private@example.org": "email",
    "+49 170 9876543": "phone",
    "4111 1111 1111 1111": "card",
    "ghp_privateprivateprivate0123456789": "key",
    "203.0.113.77": "ip",
    "anna_private": "home",
}
#: What only a reader finds.
NAME = "Annabella Privata"

QUESTION = (
    f"My name is {NAME}, reach me at anna.private@example.org or +49 170 9876543. I paid with 4111 1111 1111 1111. "
    "The deploy from /home/anna_private/shop to 203.0.113.77 fails with ghp_privateprivateprivate0123456789."
)
ANSWER = (
    "The fix was to pin `psycopg` to 3.2, because 3.3 drops the old protocol. We decided to use SQLite for tests since "
    "it needs no server. Maybe we should never do that. Have a nice day, and come again soon."
)


def event(*contents, **more):
    said = [{"role": "user" if turn % 2 == 0 else "assistant", "content": one} for turn, one in enumerate(contents)]
    return {"conversation_id": new_id(), "source": "hook", "messages": said, **more}


@pytest.fixture(scope="module")
def captured(site, client):
    """An event that went all the way, and the log of the worker that saw to it."""
    sent = event(QUESTION, ANSWER)
    answer = client.post("/capture/", json=sent)
    assert answer.status_code == 202, answer.text
    with site.working("--concurrency", "4") as worker:
        site.until("SELECT count(*) FROM uploads WHERE status = 'confirmed'", 2)
        site.until("SELECT count(*) FROM job_queue WHERE status = 'completed'", 4)
    return sent, answer.json(), worker.log.read_text()


def test_the_sender_is_told_what_became_of_the_event(site, captured):
    sent, answer, _ = captured
    [job_id] = [row[0] for row in site.rows("SELECT id FROM job_queue WHERE type = 'sanitize_ai_validation'")]
    assert answer == {
        "conversation_id": sent["conversation_id"],
        "created": True,
        "job_id": job_id,
        "removed": len(PRIVATE),
    }


def test_each_job_has_the_priority_the_attempts_and_the_key_of_its_kind(site, captured):
    conversation_id = captured[0]["conversation_id"]
    kinds = "SELECT type, priority, max_retries, idempotency_key FROM job_queue ORDER BY id"
    first, second, *uploads = site.rows(kinds)
    assert first == ("sanitize_ai_validation", 1, 3, f"sanitize-ai-validation-{conversation_id}")
    assert second == ("extract_learning", 5, 3, f"extract-learning-{conversation_id}")
    learnings = [row[0] for row in site.rows("SELECT id FROM learnings ORDER BY id")]
    assert sorted(uploads) == sorted(("mine_upload", 10, 5, f"upload-{one}") for one in learnings)
    chain = "SELECT child.type, parent.type FROM job_queue child JOIN job_queue parent ON child.parent_id = parent.id"
    assert sorted(site.rows(chain)) == [
        ("extract_learning", "sanitize_ai_validation"),
        ("mine_upload", "extract_learning"),
        ("mine_upload", "extract_learning"),
    ]


def test_payloads_have_the_fields_that_other_programs_know(site, captured):
    payloads = {kind: _json(text) for kind, text in site.rows("SELECT type, payload FROM job_queue")}
    assert payloads["sanitize_ai_validation"].keys() == {"conversation_id", "message_ids", "sanitization_version"}
    assert payloads["extract_learning"].keys() == {"conversation_id", "min_confidence", "categories"}
    upload = payloads["mine_upload"]
    assert upload.keys() == {"learning_id", "ipfs_endpoint", "chain_config"}
    assert upload["chain_config"].keys() == {"rpc_url", "contract_address", "private_key_ref"}
    assert upload["chain_config"]["private_key_ref"] == "local:ledger"


def test_what_was_taken_out_is_remembered_by_kind_and_by_whom(site, captured):
    found = site.rows("SELECT category, replacement, detector FROM sanitization_log")
    assert sorted(found) == sorted(
        [(category, f"[{category.upper()}]", "rules") for category in PRIVATE.values()] + [("name", "[NAME]", "ai")]
    )
    [question] = [row[0] for row in site.rows("SELECT content FROM messages WHERE position = 0")]
    assert question.startswith("My name is [NAME], reach me at [EMAIL] or [PHONE]. I paid with [CARD].")


def test_private_data_is_nowhere(site, captured, client):
    """Not in a row, not in a log, not in what was published; on SQLite not in a page of the file."""
    places = [path for path in site.folder.rglob("*") if path.is_file()]
    assert any(path.name.startswith("gunicorn") for path in places)
    texts = {str(path): path.read_bytes() for path in places}
    for table in ("messages", "sanitization_log", "conversations", "learnings", "uploads", "job_queue"):
        texts[table] = repr(site.rows(f"SELECT * FROM {table}")).encode()
    for snippet in PRIVATE:
        assert [place for place, text in texts.items() if snippet.encode() in text] == []
    # The name was in the message until a reader found it; it is in no row, log or publication.
    kept = {place: text for place, text in texts.items() if ".sqlite3" not in place}
    assert [place for place, text in kept.items() if NAME.encode() in text] == []


def test_learnings_are_sure_enough_and_name_their_source(site, captured):
    learnings = site.rows("SELECT category, content, confidence, source_message_ids FROM learnings ORDER BY category")
    assert [(category, content) for category, content, *_ in learnings] == [
        ("decision", "We decided to use SQLite for tests since it needs no server."),
        ("solution", "The fix was to pin `psycopg` to 3.2, because 3.3 drops the old protocol."),
    ]
    assert all(0.6 <= confidence < 1 for _, _, confidence, _ in learnings)
    answer = site.value("SELECT id FROM messages WHERE position = 1")
    assert all(_json(sources) == [answer] for *_, sources in learnings)


def test_uploads_are_in_the_store_and_in_the_ledger(site, captured):
    lines = [json.loads(line) for line in (site.network / "ledger.jsonl").read_text().splitlines()]
    written = {line["hash"]: json.loads(line["transaction"]) for line in lines}
    uploads = site.rows("SELECT learning_id, ipfs_cid, chain_tx_hash, chain_nonce, block FROM uploads")
    assert len(written) == len(uploads) == 2
    for learning_id, cid, tx_hash, nonce, block in uploads:
        assert written[tx_hash]["cid"] == cid
        assert (written[tx_hash]["learning_id"], written[tx_hash]["nonce"]) == (learning_id, nonce)
        assert lines[block - 1]["hash"] == tx_hash
        [kept] = (site.network / "store").rglob(cid)
        assert cid_of(kept.read_bytes()) == cid


def test_an_event_that_comes_again_is_captured_once_however_many_come_at_a_time(site, client):
    sent = event("Is the port 5432 taken?")
    count = f"SELECT count(*) FROM messages WHERE conversation_id = '{sent['conversation_id']}'"
    with ThreadPoolExecutor(8) as senders:
        answers = list(senders.map(lambda _: client.post("/capture/", json=sent), range(16)))
    assert sorted(answer.status_code for answer in answers) == [200] * 15 + [202]
    assert site.value(count) == 1
    key = f"sanitize-ai-validation-{sent['conversation_id']}"
    assert site.value(f"SELECT count(*) FROM job_queue WHERE idempotency_key = '{key}'") == 1
    other = client.post("/capture/", json=sent | {"messages": [{"role": "user", "content": "Something else."}]})
    assert other.status_code == 409
    assert site.value(count) == 1


BAD = {
    "no JSON": (b"{", 400, ""),
    "nothing said": (json.dumps({"messages": []}).encode(), 400, "messages"),
    "nobody's role": (json.dumps({"messages": [{"role": "pope", "content": "x"}]}).encode(), 400, "messages.0.role"),
    "no id of ours": (json.dumps(event("x", conversation_id="7")).encode(), 400, "conversation_id"),
    "a NUL": (json.dumps(event("a\0b")).encode(), 400, "messages.0.content"),
    "half a letter": (json.dumps(event("\ud800")).encode(), 400, ""),
    "a name of its own": (
        json.dumps({"messages": [{"role": "user", "content": "x", "anna.private@example.org": ""}]}).encode(),
        400,
        "messages.0",
    ),
    "too deep": (b'{"messages": ' + b"[" * 100_000, 400, ""),
    "other letters": (json.dumps(event("x")).encode("utf-16"), 400, ""),
    "too much": (json.dumps(event("x" * 1_000_001)).encode(), 413, None),
    "far too much": (json.dumps(event("x" * 3_000_001)).encode(), 413, None),
}


@pytest.mark.parametrize(("body", "status", "field"), BAD.values(), ids=BAD)
def test_a_bad_event_is_refused_in_words_and_leaves_nothing(site, client, body, status, field):
    before = site.value("SELECT count(*) FROM conversations")
    # What the server does not read to its end, it cannot be asked anything after.
    headers = {"content-type": "application/json", "connection": "close"}
    answer = client.post("/capture/", content=body, headers=headers)
    assert answer.status_code == status
    if field is None:
        assert answer.json()["error"].startswith("The event is larger than")
    else:
        assert answer.json()["details"][0]["field"] == field
        assert "anna.private" not in answer.text
    assert site.value("SELECT count(*) FROM conversations") == before


def test_two_conversations_that_teach_the_same_make_one_learning(site, client, captured):
    sent = event("Anything to add?", ANSWER.split(". ")[1] + ".")
    assert client.post("/capture/", json=sent).status_code == 202
    done = f"SELECT status FROM conversations WHERE id = '{sent['conversation_id']}'"
    with site.working():
        site.until(done, "learned")
    assert site.value("SELECT count(*) FROM learnings") == 2
    assert site.value("SELECT count(*) FROM job_queue WHERE type = 'mine_upload'") == 2


#: As other programs write them; the words in braces are values.
STATEMENTS = (
    """INSERT INTO learnings (
          id, conversation_id, category, title, content,
          confidence, tags, dedupe_hash, source_message_ids,
          created_at
        )
        VALUES ('{learning}', '{conversation}', 'pitfall', 'a', 'b', 0.9, '[]', 'c', '[]', '{now}')""",
    """INSERT INTO sanitization_log (
            id, conversation_id, message_id, category,
            original_snippet_hash, replacement, detector,
            confidence, created_at
          )
          VALUES ('{entry}', '{conversation}', '{message}', 'name', 'd', '[NAME]', 'ai', 0.9, '{now}')""",
    *[
        """INSERT INTO uploads (id, learning_id, ipfs_cid, status, uploaded_at, created_at, updated_at)
    VALUES ('{upload}', '{learning}', 'bafy', 'ipfs_uploaded', '{now}', '{now}', '{now}')
    ON CONFLICT(learning_id) DO UPDATE SET
      ipfs_cid = excluded.ipfs_cid,
      status = excluded.status,
      uploaded_at = excluded.uploaded_at,
      updated_at = excluded.updated_at"""
    ]
    * 2,
)


def test_other_programs_write_to_the_tables_with_statements_of_their_own(site, captured):
    names = ("learning", "entry", "upload")
    values = {name: new_id() for name in names} | {"now": "2025-01-16T10:30:00.000Z"}
    values["conversation"] = captured[0]["conversation_id"]
    values["message"] = site.value(f"SELECT min(id) FROM messages WHERE conversation_id = '{values['conversation']}'")
    for statement in STATEMENTS:
        site.write(statement.format(**values))
    assert site.value(f"SELECT count(*) FROM uploads WHERE learning_id = '{values['learning']}'") == 1


def test_a_sender_needs_the_token_where_one_is_set(rf, settings):
    from example_project.capture.views import capture_event

    settings.CAPTURE = settings.CAPTURE | {"TOKEN": "let me in"}
    for headers in ({}, {"Authorization": "Bearer let me"}, {"Authorization": "let me in"}):
        assert capture_event(rf.post("/capture/", headers=headers)).status_code == 401
    let_in = {"content_type": "application/json", "headers": {"Authorization": "Bearer let me in"}}
    assert capture_event(rf.post("/capture/", **let_in)).status_code == 400
    assert capture_event(rf.get("/capture/")).status_code == 405


@pytest.mark.parametrize("kind", ["application/x-www-form-urlencoded", "text/plain", "multipart/form-data; boundary=b"])
def test_an_event_that_any_page_could_send_or_an_error_report_would_quote_is_refused(rf, kind):
    from example_project.capture.views import capture_event

    assert capture_event(rf.post("/capture/", json.dumps(event("x")), content_type=kind)).status_code == 415


def _json(value):
    return json.loads(value) if isinstance(value, str) else value
