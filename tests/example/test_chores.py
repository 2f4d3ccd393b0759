"""Tests of the chores and a local AWS, each run twice: with a real worker, and inside the transaction of a test."""

from __future__ import annotations

import json
from contextlib import redirect_stdout
from datetime import timedelta
from io import StringIO

import pytest
from django.contrib.sessions.models import Session
from django.core.management import call_command
from django.db import connection, transaction

from example_project.chores.jobs import (
    BATCH,
    EmbeddingBatch,
    Item,
    MemoryConsolidation,
    embedding_batch,
    memory_consolidation,
    prompt_hash,
)
from example_project.chores.models import Embedding, Memory
from example_project.chores.vectors import NoWords, embed, similarity
from jobqueue import JobContext
from jobqueue.clock import SYSTEM
from jobqueue.testing import assert_idempotent, drain

pytestmark = pytest.mark.timeout(180)
PROMPT = "The lamp must be green. It is nice."

#: What a project's code would do; run in a process of its own.
PREPARE = """
from datetime import timedelta
from django.contrib.sessions.models import Session
from django.utils.timezone import now
from example_project.chores.models import Memory
ages = {f"old-{number}": timedelta(days=3) for number in range(1200)} | {"fresh": timedelta(hours=1)}
Session.objects.bulk_create(Session(pk=key, session_data="", expire_date=now() - age) for key, age in ages.items())
for content in (
    "the printer in the hall is out of paper",
    "the printer in the hall is out of paper again",
    "again the printer in the hall is out of paper",
    "somebody left a bicycle in the yard",
):
    Memory.objects.create(content=content, importance=0.8)
"""
ENQUEUE = f"""
from example_project.chores import jobs
from example_project.chores.models import Memory
ids = list(Memory.objects.filter(kind="episodic").values_list("pk", flat=True))
items = [{{"sourceId": str(n), "text": "" if n == {BATCH} + 3 else f"text number {{n}}"}} for n in range(3 * {BATCH})]
config, late = {{"versioning": True}}, {{"attributes": {{"DelaySeconds": 5}}}}
print([one.outcome.value for one in [
    jobs.ask("{PROMPT}", "answers/lamp.md", "R-1"),
    jobs.ask("{PROMPT}", "answers/lamp.md", "R-1"),
    jobs.ask("Out of here!", "../lamp.md", "R-2"),
    jobs.sync_aws.enqueue(resource_type="s3_bucket", resource_id="a-bucket", config=config),
    jobs.sync_aws.enqueue(resource_type="sqs_queue", resource_id="a-queue", config=late),
    jobs.embedding_batch.enqueue({{"items": items, "namespace": "texts"}}),
    jobs.memory_consolidation.enqueue(memory_ids=ids),
    jobs.session_cleanup.enqueue(),
]])
"""


@pytest.fixture(scope="module")
def aws():
    """A local imitation of AWS, and a client of it."""
    boto3 = pytest.importorskip("boto3")
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    endpoint = "http://{}:{}".format(*server.get_host_and_port())
    keys = {"aws_access_key_id": "testing", "aws_secret_access_key": "testing", "region_name": "eu-central-1"}

    def client(service):
        return boto3.client(service, endpoint_url=endpoint, **keys)

    client.environment = {
        "EXAMPLE_AWS_ENDPOINT": endpoint,
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
    }
    yield client
    server.stop()


class WithWorker:
    """A project in processes of its own."""

    def __init__(self, site, aws):
        self.environment = aws.environment
        self.site = site
        self.network = site.network
        self.rows = site.rows

    def run(self, code):
        said = self.site.manage("shell", "-v", "0", "-c", code)
        self.site.manage("runworker", "--drain", "--skip-checks", "-v", "0", **self.environment)
        return said


class InTest:
    """The same project in this process, whose transaction is rolled back."""

    def __init__(self, network):
        self.network = network

    def run(self, code):
        with redirect_stdout(StringIO()) as said:
            call_command("shell", "-c", code, verbosity=0)
        drain(errors="collect")
        return said.getvalue()

    def rows(self, statement):
        with connection.cursor() as cursor:
            cursor.execute(statement)
            return cursor.fetchall()


@pytest.fixture
def with_worker(request, aws):
    return WithWorker(request.getfixturevalue("_server"), aws)


@pytest.fixture
def in_test(request, aws, settings, tmp_path, monkeypatch):
    request.getfixturevalue("databases")
    for name, value in aws.environment.items():
        monkeypatch.setenv(name, value)
    settings.CHORES = settings.CHORES | {
        "RESULTS": tmp_path / "results",
        "AWS_ENDPOINT": aws.environment["EXAMPLE_AWS_ENDPOINT"],
    }
    block = transaction.atomic()
    block._from_testcase = True
    with block:
        yield InTest(tmp_path)
        transaction.set_rollback(True)


@pytest.fixture(
    params=[
        pytest.param("with_worker", marks=pytest.mark.postgres),
        pytest.param("in_test", marks=pytest.mark.sqlite),
    ],
)
def project(request):
    """The example project, with nothing in it: on Postgres with a worker, and on SQLite with the tools for tests."""
    return request.getfixturevalue(request.param)


def result_of(project, kind):
    """The result of the newest completed job of a type."""
    [found] = project.rows(
        f"SELECT result FROM job_queue WHERE type = '{kind}' AND status = 'completed' ORDER BY id DESC LIMIT 1"
    )
    return json.loads(found[0]) if isinstance(found[0], str) else found[0]


def value(project, statement):
    return project.rows(statement)[0][0]


def test_each_chore_is_done_and_may_be_done_again(project, aws):
    boto_s3, boto_sqs = aws("s3"), aws("sqs")
    boto_s3.delete_bucket(Bucket="a-bucket") if boto_s3.list_buckets()["Buckets"] else None
    for url in boto_sqs.list_queues().get("QueueUrls", []):
        boto_sqs.delete_queue(QueueUrl=url)
    assert "'created', 'existing', 'created'" in project.run(PREPARE + ENQUEUE)

    assert (project.network / "results" / "answers" / "lamp.md").read_text() == "- The lamp must be green."
    [(error,)] = project.rows("SELECT error FROM job_queue WHERE status = 'dead_letter'")
    assert "leads out of the folder" in error
    assert not (project.network / "lamp.md").exists()

    versioning = boto_s3.get_bucket_versioning(Bucket="a-bucket")["Status"]
    [url] = boto_sqs.list_queues()["QueueUrls"]
    delay = boto_sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]["DelaySeconds"]
    assert (versioning, delay) == ("Enabled", "5")

    embedded = result_of(project, "embedding_batch")
    assert (embedded["total"], embedded["succeeded"], embedded["failed"]) == (3 * BATCH, 2 * BATCH, BATCH)
    assert set(embedded["errors"]) == {str(number) for number in range(BATCH, 2 * BATCH)}
    assert value(project, "SELECT count(*) FROM chores_embedding") == 2 * BATCH

    assert result_of(project, "memory_consolidation") == {"consolidated": True, "clusters": 1, "memories": 4}
    semantic = project.rows("SELECT content, importance FROM chores_memory WHERE kind = 'semantic'")
    assert semantic == [("the printer in the hall is out of paper again", 0.8)]
    halved = "SELECT importance FROM chores_memory WHERE kind = 'episodic' ORDER BY id"
    assert [row[0] for row in project.rows(halved)] == [0.4, 0.4, 0.4, 0.8]

    assert result_of(project, "session_cleanup") == 1200
    prepared = "SELECT session_key FROM django_session WHERE session_key = 'fresh' OR session_key LIKE 'old-%'"
    assert project.rows(prepared) == [("fresh",)]

    project.run(ENQUEUE)
    actions = "SELECT result FROM job_queue WHERE type = 'sync_aws' ORDER BY id"
    assert [str(row[0]).count("created") for row in project.rows(actions)] == [1, 1, 0, 0]
    assert ["kept" in str(row[0]) for row in project.rows(actions)] == [False, False, True, True]
    assert value(project, "SELECT count(*) FROM chores_embedding") == 2 * BATCH
    assert result_of(project, "session_cleanup") == 0


def test_a_chore_that_is_killed_at_any_statement_is_done_once(in_test):
    made = [Memory.objects.create(content="the printer is out of paper", importance=0.8).pk for _ in range(2)]
    items = [{"sourceId": str(number), "text": f"text {number}"} for number in range(BATCH + 1)]
    Session.objects.create(pk="old", session_data="", expire_date=SYSTEM.now() - timedelta(days=3))

    def outcome():
        memories = Memory.objects.order_by("pk").values_list("kind", "importance")
        return [*memories], Embedding.objects.count(), Session.objects.count()

    assert_idempotent(memory_consolidation, {"memory_ids": made}, observe=outcome)
    assert_idempotent(embedding_batch, {"items": items, "namespace": "texts"}, observe=outcome)
    assert_idempotent("session_cleanup", observe=outcome)


#: One attempt has stored all but not committed when another one, begun since the first seemed dead, comes as far.
OVERTAKEN = """
from threading import Thread
from django.db import connection, transaction
from example_project.chores.jobs import MemoryConsolidation, memory_consolidation
from example_project.chores.models import Memory
from jobqueue import JobContext
from tests.worker.harness import until
ctx = JobContext(job_id="one job", job_type="x", queue="q", attempt=1, max_retries=3, fence=1)
made = [Memory.objects.create(content="a bird sits on the roof", importance=0.8).pk for _ in range(2)]
def run():
    memory_consolidation(MemoryConsolidation(memory_ids=made), ctx)
def run_beside():
    run()
    connection.close()
def is_waited_for():
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks "
            "WHERE NOT granted AND pg_backend_pid() = ANY(pg_blocking_pids(pid))")
        return cursor.fetchone()[0] > 0
with transaction.atomic():
    run()
    other = Thread(target=run_beside)
    other.start()
    until(is_waited_for, what="an attempt that waits for the other one")
other.join()
print(Memory.objects.filter(source_id="one job").count())
print(*Memory.objects.filter(pk__in=made).values_list("importance", flat=True))
"""


@pytest.mark.parametrize("site", [pytest.param("_server", marks=pytest.mark.postgres)], indirect=True, ids=["postgres"])
def test_memories_lose_importance_once_though_two_attempts_run_at_a_time(site):
    assert site.manage("shell", "-v", "0", "-c", OVERTAKEN).splitlines() == ["1", "0.4 0.4"]


class Attendant:
    """Hears what a handler reports."""

    def __init__(self):
        self.reports = []

    def report(self, text):
        self.reports.append(json.loads(text))

    def stop_reason(self):
        return None


@pytest.fixture
def ctx(databases):
    """The attempt of a handler that runs here."""
    yield JobContext(
        job_id="the job", job_type="x", queue="q", attempt=1, max_retries=3, fence=1, attendant=Attendant()
    )
    Embedding.objects.all().delete()
    Memory.objects.all().delete()


@pytest.mark.sqlite
def test_a_batch_reports_how_far_it_is(ctx):
    items = [Item(source_id=str(number), text=f"text {number}") for number in range(2 * BATCH + 1)]
    embedding_batch(EmbeddingBatch(items=items, namespace="texts"), ctx)
    told = [(one["batch"], one["batches"], round(one["percent"])) for one in ctx.attendant.reports]
    assert told == [(1, 3, 33), (2, 3, 67), (3, 3, 100)]


@pytest.mark.sqlite
def test_memories_lose_importance_once_though_the_job_runs_twice(ctx):
    made = [Memory.objects.create(content="the printer is out of paper", importance=0.8) for _ in range(2)]
    payload = MemoryConsolidation(memory_ids=[one.pk for one in made])
    for _ in range(2):
        assert memory_consolidation(payload, ctx)["clusters"] == 1
    assert Memory.objects.filter(kind="semantic").count() == 1
    assert set(Memory.objects.filter(kind="episodic").values_list("importance", flat=True)) == {0.4}
    assert [one["phase"] for one in ctx.attendant.reports[:4]] == ["analysing", "generating", "storing", "complete"]


def test_like_texts_lie_close_and_others_do_not():
    printer, paper, yard = embed(
        ["the printer is out of paper", "out of paper is the printer", "a bicycle stands there"]
    )
    assert similarity(printer, printer) == pytest.approx(1)
    assert similarity(printer, paper) > 0.7 > 0.4 > similarity(printer, yard)
    with pytest.raises(NoWords):
        embed(["words", "…"])


def test_a_prompt_is_known_by_its_hash():
    from pydantic import ValidationError

    from example_project.chores.jobs import ClaudeExtraction

    given = {"prompt": PROMPT, "targetPath": "a.md", "requirementId": "R-1", "promptHash": prompt_hash(PROMPT)}
    assert ClaudeExtraction.model_validate(given).model_dump(by_alias=True) == given
    with pytest.raises(ValidationError, match="not that of the prompt"):
        ClaudeExtraction.model_validate(given | {"prompt": "Another."})
