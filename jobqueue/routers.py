"""The database router for a queue in a database of its own."""

from __future__ import annotations

from typing import Any

from django.db import models

from jobqueue import conf

APP = "jobqueue"


class JobQueueRouter:
    """Sends the queue's tables to ``JOBQUEUE["DATABASE"]``, and keeps them out of other databases.

    Add it to DATABASE_ROUTERS. Migrations create the tables in ``JOBQUEUE["RELAY_TO"]`` too. Other apps are left to
    other routers.
    """

    def db_for_read(self, model: type[models.Model], **_: Any) -> str | None:
        return self._alias(model)

    def db_for_write(self, model: type[models.Model], **_: Any) -> str | None:
        return self._alias(model)

    def allow_migrate(self, db: str, app_label: str, **_: Any) -> bool | None:
        return db in (conf.get("DATABASE"), conf.get("RELAY_TO")) if app_label == APP else None

    def _alias(self, model: type[models.Model]) -> str | None:
        return str(conf.get("DATABASE")) if model._meta.app_label == APP else None
