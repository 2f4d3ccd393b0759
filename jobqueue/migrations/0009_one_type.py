"""Columns hold values of their own type alone, on SQLite too; a pause has a scope that exists."""

from __future__ import annotations

from typing import Any

from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

import jobqueue.models.fields

_IS_NO_COUNT = "NOT ({0} | 0 = {0} AND {0} >= -2147483648 AND {0} <= 2147483647)"
_IS_NO_NUMBER = "{0} >= ''"
_IS_NO_TEXT = "{0} >= x''"
_IS_NO_FLAG = "NOT ({0} = 0 OR {0} = 1)"
_IS_NO_FENCE = "NOT ({0} | 0 = {0})"

#: Of the columns of job_queue, what says that a value is of another type, and what is put in its place.
_JOB = {
    "id": (_IS_NO_TEXT, "'unreadable-' || lower(hex(randomblob(16)))"),
    **dict.fromkeys(("type", "queue"), (_IS_NO_TEXT, "hex({0})")),
    **dict.fromkeys(("lease_owner", "idempotency_key", "unique_key", "tenant", "workspace"), (_IS_NO_TEXT, "NULL")),
    **dict.fromkeys(("concurrency_key", "parent_id", "schedule_id", "end_reason"), (_IS_NO_TEXT, "NULL")),
    **dict.fromkeys(("error_fingerprint", "error"), (_IS_NO_TEXT, "NULL")),
    **dict.fromkeys(("payload", "result", "progress", "context"), (_IS_NO_TEXT, "CAST({0} AS TEXT)")),
    **dict.fromkeys(("attempts", "crash_count"), (_IS_NO_COUNT, "0")),
    "max_retries": (_IS_NO_COUNT, "3"),
    "payload_version": (_IS_NO_COUNT, "1"),
    "priority": (_IS_NO_COUNT, "5"),
    "exact_priority": (_IS_NO_COUNT, "NULL"),
    "fence": (_IS_NO_FENCE, "0"),
    "parallel": (_IS_NO_FLAG, "1"),
}
#: Of the other tables, what says so; workers write such rows again, and of an attempt nothing can be told.
_OTHERS: dict[str, dict[str, tuple[str, ...]]] = {
    "job_queue_attempt": {
        _IS_NO_TEXT: ("owner", "ending", "error_class", "message", "traceback"),
        _IS_NO_COUNT: ("attempt",),
        _IS_NO_FENCE: ("fence",),
        _IS_NO_NUMBER: ("duration",),
    },
    "job_queue_metric": {
        _IS_NO_TEXT: ("queue", "type", "waited", "ran"),
        _IS_NO_COUNT: (
            *("span", "completed", "retried", "dead_lettered", "stopped", "lost"),
            *("waited_count", "ran_count", "queued", "in_progress"),
        ),
        _IS_NO_NUMBER: ("waited_sum", "ran_sum", "oldest"),
    },
    "job_queue_pause": {_IS_NO_TEXT: ("scope", "name", "reason")},
    "job_queue_relay": {_IS_NO_TEXT: ("source", "batch", "refused", "error"), _IS_NO_FLAG: ("is_own",)},
    "job_queue_worker": {
        _IS_NO_TEXT: ("owner", "name", "host", "version", "state", "queues", "types"),
        _IS_NO_COUNT: ("pid", "processes", "slots", "busy"),
    },
}


def put_aside(_apps: Any, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Make dead letters of live jobs that no worker could read, and mend what the CHECKs will not take."""
    schema_editor.execute("DELETE FROM job_queue_pause WHERE NOT (scope = 'queue' OR scope = 'type')")
    if schema_editor.connection.vendor != "sqlite":
        return
    wrong = {name: condition.format(name) for name, (condition, _right) in _JOB.items()}
    is_wrong = " OR ".join(wrong.values())
    schema_editor.execute(
        "UPDATE job_queue SET status = 'dead_letter', end_reason = 'unreadable', lease_owner = NULL, "
        "lease_until = NULL, completed_at = updated_at, "
        "error = 'unreadable: another program wrote values of another type than their columns have' "
        f"WHERE status IN ('queued', 'in_progress') AND ({is_wrong})"
    )
    mended = (
        f"{name} = CASE WHEN {wrong[name]} THEN {right.format(name)} ELSE {name} END"
        for name, (_condition, right) in _JOB.items()
    )
    schema_editor.execute(f"UPDATE job_queue SET {', '.join(mended)} WHERE {is_wrong}")
    for table, columns in _OTHERS.items():
        found = (condition.format(name) for condition, names in columns.items() for name in names)
        schema_editor.execute(f"DELETE FROM {table} WHERE {' OR '.join(found)}")


def make_again(apps: Any, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Going back, make the tables as they were: what is only noted below leaves its CHECKs."""
    if schema_editor.connection.vendor == "sqlite":
        for name in ("Job", "Attempt", "Metric", "Pause", "Relay", "Worker"):
            schema_editor._remake_table(apps.get_model("jobqueue", name))  # type: ignore[attr-defined]


class Migration(migrations.Migration):
    dependencies = [
        ("jobqueue", "0008_attempt_permissions"),
    ]

    operations = [
        migrations.RunPython(put_aside, make_again),
        # SQLite makes a table again for each change. So all but one of each table are only noted here. The one that is
        # made then, which for jobs is that of the last column, so that their order stays, makes them all.
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.AlterField(
                    model_name="attempt",
                    name="duration",
                    field=jobqueue.models.fields.AmountField(help_text="Seconds.", null=True, verbose_name="duration"),
                ),
                migrations.AlterField(
                    model_name="metric",
                    name="ran",
                    field=jobqueue.models.fields.DataField(default=dict, verbose_name="ran"),
                ),
                migrations.AlterField(
                    model_name="attempt",
                    name="attempt",
                    field=jobqueue.models.fields.CountField(verbose_name="attempt"),
                ),
                migrations.AlterField(
                    model_name="attempt",
                    name="ending",
                    field=jobqueue.models.fields.NameField(
                        choices=[
                            ("failed", "failed"),
                            ("timed_out", "timed out"),
                            ("lease_lost", "lease lost"),
                            ("crashed", "crashed"),
                            ("released", "released"),
                            ("snoozed", "snoozed"),
                            ("cancelled", "cancelled"),
                            ("expired", "expired"),
                            ("invalid", "invalid payload"),
                        ],
                        max_length=16,
                        verbose_name="ending",
                    ),
                ),
                migrations.AlterField(
                    model_name="attempt",
                    name="error_class",
                    field=jobqueue.models.fields.NameField(blank=True, max_length=255, verbose_name="error class"),
                ),
                migrations.AlterField(
                    model_name="attempt",
                    name="fence",
                    field=jobqueue.models.fields.FenceField(verbose_name="fence"),
                ),
                migrations.AlterField(
                    model_name="attempt",
                    name="message",
                    field=jobqueue.models.fields.WordsField(blank=True, verbose_name="message"),
                ),
                migrations.AlterField(
                    model_name="attempt",
                    name="owner",
                    field=jobqueue.models.fields.NameField(max_length=255, verbose_name="worker"),
                ),
                migrations.AlterField(
                    model_name="attempt",
                    name="traceback",
                    field=jobqueue.models.fields.WordsField(blank=True, verbose_name="traceback"),
                ),
                migrations.AlterField(
                    model_name="job",
                    name="attempts",
                    field=jobqueue.models.fields.CountField(db_default=0, verbose_name="attempts"),
                ),
                migrations.AlterField(
                    model_name="job",
                    name="concurrency_key",
                    field=jobqueue.models.fields.NameField(max_length=255, null=True, verbose_name="concurrency key"),
                ),
                migrations.AlterField(
                    model_name="job",
                    name="context",
                    field=jobqueue.models.fields.DataField(null=True, verbose_name="context"),
                ),
                migrations.AlterField(
                    model_name="job",
                    name="crash_count",
                    field=jobqueue.models.fields.CountField(db_default=0, verbose_name="crash count"),
                ),
                migrations.AlterField(
                    model_name="job",
                    name="end_reason",
                    field=jobqueue.models.fields.NameField(max_length=100, null=True, verbose_name="end reason"),
                ),
                migrations.AlterField(
                    model_name="job",
                    name="error",
                    field=jobqueue.models.fields.WordsField(null=True, verbose_name="error"),
                ),
                migrations.AlterField(
                    model_name="job",
                    name="error_fingerprint",
                    field=jobqueue.models.fields.NameField(max_length=64, null=True, verbose_name="error fingerprint"),
                ),
                migrations.AlterField(
                    model_name="job",
                    name="fence",
                    field=jobqueue.models.fields.FenceField(
                        db_default=0,
                        help_text="The number of the claim. It grows with each claim and never decreases.",
                        verbose_name="fence",
                    ),
                ),
                migrations.AlterField(
                    model_name="job",
                    name="idempotency_key",
                    field=jobqueue.models.fields.NameField(max_length=255, null=True, verbose_name="idempotency key"),
                ),
                migrations.AlterField(
                    model_name="job",
                    name="lease_owner",
                    field=jobqueue.models.fields.NameField(max_length=255, null=True, verbose_name="lease owner"),
                ),
                migrations.AlterField(
                    model_name="job",
                    name="max_retries",
                    field=jobqueue.models.fields.CountField(
                        db_default=3, help_text="The total number of attempts.", verbose_name="max retries"
                    ),
                ),
                migrations.AlterField(
                    model_name="job",
                    name="parallel",
                    field=jobqueue.models.fields.FlagField(db_default=True, verbose_name="parallel"),
                ),
                migrations.AlterField(
                    model_name="job",
                    name="parent_id",
                    field=jobqueue.models.fields.NameField(max_length=64, null=True, verbose_name="parent"),
                ),
                migrations.AlterField(
                    model_name="job",
                    name="payload",
                    field=jobqueue.models.fields.DataField(verbose_name="payload"),
                ),
                migrations.AlterField(
                    model_name="job",
                    name="payload_version",
                    field=jobqueue.models.fields.CountField(db_default=1, verbose_name="payload version"),
                ),
                migrations.AlterField(
                    model_name="job",
                    name="priority",
                    field=jobqueue.models.fields.SmallCountField(
                        db_default=5, help_text="1 runs first, 10 last.", verbose_name="priority"
                    ),
                ),
                migrations.AlterField(
                    model_name="job",
                    name="progress",
                    field=jobqueue.models.fields.DataField(null=True, verbose_name="progress"),
                ),
                migrations.AlterField(
                    model_name="job",
                    name="queue",
                    field=jobqueue.models.fields.NameField(db_default="default", max_length=100, verbose_name="queue"),
                ),
                migrations.AlterField(
                    model_name="job",
                    name="result",
                    field=jobqueue.models.fields.DataField(null=True, verbose_name="result"),
                ),
                migrations.AlterField(
                    model_name="job",
                    name="schedule_id",
                    field=jobqueue.models.fields.NameField(max_length=64, null=True, verbose_name="schedule"),
                ),
                migrations.AlterField(
                    model_name="job",
                    name="status",
                    field=jobqueue.models.fields.NameField(
                        choices=[
                            ("queued", "queued"),
                            ("in_progress", "in progress"),
                            ("completed", "completed"),
                            ("failed", "failed"),
                            ("dead_letter", "dead letter"),
                        ],
                        db_default="queued",
                        max_length=16,
                        verbose_name="status",
                    ),
                ),
                migrations.AlterField(
                    model_name="job",
                    name="tenant",
                    field=jobqueue.models.fields.NameField(max_length=100, null=True, verbose_name="tenant"),
                ),
                migrations.AlterField(
                    model_name="job",
                    name="timeout",
                    field=jobqueue.models.fields.AmountField(
                        help_text="Seconds. If empty, the limit of the job type applies.",
                        null=True,
                        verbose_name="timeout",
                    ),
                ),
                migrations.AlterField(
                    model_name="job",
                    name="type",
                    field=jobqueue.models.fields.NameField(max_length=100, verbose_name="type"),
                ),
                migrations.AlterField(
                    model_name="job",
                    name="unique_key",
                    field=jobqueue.models.fields.NameField(max_length=255, null=True, verbose_name="unique key"),
                ),
                migrations.AlterField(
                    model_name="job",
                    name="workspace",
                    field=jobqueue.models.fields.NameField(max_length=100, null=True, verbose_name="workspace"),
                ),
                migrations.AlterField(
                    model_name="metric",
                    name="completed",
                    field=jobqueue.models.fields.CountField(db_default=0, verbose_name="completed"),
                ),
                migrations.AlterField(
                    model_name="metric",
                    name="dead_lettered",
                    field=jobqueue.models.fields.CountField(db_default=0, verbose_name="dead-lettered"),
                ),
                migrations.AlterField(
                    model_name="metric",
                    name="in_progress",
                    field=jobqueue.models.fields.CountField(null=True, verbose_name="in progress"),
                ),
                migrations.AlterField(
                    model_name="metric",
                    name="lost",
                    field=jobqueue.models.fields.CountField(db_default=0, verbose_name="lost"),
                ),
                migrations.AlterField(
                    model_name="metric",
                    name="oldest",
                    field=jobqueue.models.fields.AmountField(help_text="Seconds.", null=True, verbose_name="oldest"),
                ),
                migrations.AlterField(
                    model_name="metric",
                    name="queue",
                    field=jobqueue.models.fields.NameField(max_length=100, verbose_name="queue"),
                ),
                migrations.AlterField(
                    model_name="metric",
                    name="queued",
                    field=jobqueue.models.fields.CountField(null=True, verbose_name="queued"),
                ),
                migrations.AlterField(
                    model_name="metric",
                    name="ran_count",
                    field=jobqueue.models.fields.CountField(db_default=0, verbose_name="ran, number"),
                ),
                migrations.AlterField(
                    model_name="metric",
                    name="ran_sum",
                    field=jobqueue.models.fields.AmountField(
                        db_default=0.0, help_text="Seconds.", verbose_name="ran, sum"
                    ),
                ),
                migrations.AlterField(
                    model_name="metric",
                    name="retried",
                    field=jobqueue.models.fields.CountField(db_default=0, verbose_name="retried"),
                ),
                migrations.AlterField(
                    model_name="metric",
                    name="span",
                    field=jobqueue.models.fields.CountField(help_text="Seconds.", verbose_name="length"),
                ),
                migrations.AlterField(
                    model_name="metric",
                    name="stopped",
                    field=jobqueue.models.fields.CountField(db_default=0, verbose_name="stopped"),
                ),
                migrations.AlterField(
                    model_name="metric",
                    name="type",
                    field=jobqueue.models.fields.NameField(max_length=100, verbose_name="type"),
                ),
                migrations.AlterField(
                    model_name="metric",
                    name="waited",
                    field=jobqueue.models.fields.DataField(default=dict, verbose_name="waited"),
                ),
                migrations.AlterField(
                    model_name="metric",
                    name="waited_count",
                    field=jobqueue.models.fields.CountField(db_default=0, verbose_name="waited, number"),
                ),
                migrations.AlterField(
                    model_name="metric",
                    name="waited_sum",
                    field=jobqueue.models.fields.AmountField(
                        db_default=0.0, help_text="Seconds.", verbose_name="waited, sum"
                    ),
                ),
                migrations.AlterField(
                    model_name="pause",
                    name="name",
                    field=jobqueue.models.fields.NameField(max_length=100, verbose_name="name"),
                ),
                migrations.AlterField(
                    model_name="pause",
                    name="reason",
                    field=jobqueue.models.fields.WordsField(blank=True, verbose_name="reason"),
                ),
                migrations.AlterField(
                    model_name="pause",
                    name="scope",
                    field=jobqueue.models.fields.NameField(
                        choices=[("queue", "queue"), ("type", "type")], max_length=8, verbose_name="scope"
                    ),
                ),
                migrations.AlterField(
                    model_name="relay",
                    name="batch",
                    field=jobqueue.models.fields.NameField(
                        blank=True, help_text="The last batch that was stored.", max_length=64, verbose_name="batch"
                    ),
                ),
                migrations.AlterField(
                    model_name="relay",
                    name="is_own",
                    field=jobqueue.models.fields.FlagField(
                        help_text="Whether the outbox is in this database.", verbose_name="is own"
                    ),
                ),
                migrations.AlterField(
                    model_name="relay",
                    name="refused",
                    field=jobqueue.models.fields.DataField(
                        default=dict,
                        help_text="The jobs of that batch that were refused, with the reasons.",
                        verbose_name="refused",
                    ),
                ),
                migrations.AlterField(
                    model_name="worker",
                    name="busy",
                    field=jobqueue.models.fields.CountField(
                        help_text="The number of slots that run a job.", verbose_name="busy"
                    ),
                ),
                migrations.AlterField(
                    model_name="worker",
                    name="host",
                    field=jobqueue.models.fields.NameField(max_length=255, verbose_name="host"),
                ),
                migrations.AlterField(
                    model_name="worker",
                    name="name",
                    field=jobqueue.models.fields.NameField(max_length=100, verbose_name="name"),
                ),
                migrations.AlterField(
                    model_name="worker",
                    name="pid",
                    field=jobqueue.models.fields.CountField(verbose_name="process id"),
                ),
                migrations.AlterField(
                    model_name="worker",
                    name="processes",
                    field=jobqueue.models.fields.CountField(verbose_name="processes"),
                ),
                migrations.AlterField(
                    model_name="worker",
                    name="queues",
                    field=jobqueue.models.fields.DataField(
                        help_text="If empty, the worker serves all queues.", null=True, verbose_name="queues"
                    ),
                ),
                migrations.AlterField(
                    model_name="worker",
                    name="slots",
                    field=jobqueue.models.fields.CountField(verbose_name="slots"),
                ),
                migrations.AlterField(
                    model_name="worker",
                    name="state",
                    field=jobqueue.models.fields.NameField(
                        choices=[("running", "running"), ("stopping", "stopping")], max_length=16, verbose_name="state"
                    ),
                ),
                migrations.AlterField(
                    model_name="worker",
                    name="version",
                    field=jobqueue.models.fields.NameField(max_length=32, verbose_name="version"),
                ),
            ]
        ),
        migrations.AlterField(
            model_name="attempt",
            name="id",
            field=jobqueue.models.fields.NumberKey(
                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
            ),
        ),
        migrations.AlterField(
            model_name="job",
            name="exact_priority",
            field=jobqueue.models.fields.SmallCountField(
                help_text="The priority of django.tasks, from -100 to 100.", null=True, verbose_name="exact priority"
            ),
        ),
        migrations.AlterField(
            model_name="metric",
            name="id",
            field=jobqueue.models.fields.NumberKey(
                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
            ),
        ),
        migrations.AlterField(
            model_name="pause",
            name="id",
            field=jobqueue.models.fields.NumberKey(
                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
            ),
        ),
        migrations.AlterField(
            model_name="relay",
            name="error",
            field=jobqueue.models.fields.WordsField(blank=True, verbose_name="error"),
        ),
        migrations.AlterField(
            model_name="worker",
            name="types",
            field=jobqueue.models.fields.DataField(verbose_name="types"),
        ),
        migrations.AddField(
            model_name="worker",
            name="left_out",
            field=jobqueue.models.fields.DataField(
                help_text="Jobs that the worker can neither run nor end, by id, each with the reason.",
                null=True,
                verbose_name="left out",
            ),
        ),
        migrations.AddConstraint(
            model_name="pause",
            constraint=models.CheckConstraint(
                condition=models.Q(("scope", "queue"), ("scope", "type"), _connector="OR"), name="job_queue_pause_scope"
            ),
        ),
    ]
