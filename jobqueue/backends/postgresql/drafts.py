"""The storing of drafts on Postgres, with one statement for many drafts."""

from __future__ import annotations

import json
from collections.abc import Sequence

from jobqueue.backends.postgresql import statements, values
from jobqueue.backends.postgresql.session import PostgresSession
from jobqueue.backends.sql.drafts import Drafts
from jobqueue.records import Draft


class PostgresDrafts(Drafts):
    """Inserts drafts in one round trip."""

    _session: PostgresSession

    def insert(self, draft: Draft) -> bool:
        return bool(self.insert_all([draft]))

    def insert_all(self, drafts: Sequence[Draft]) -> set[str]:
        common, each = values.common_and_each(drafts)
        parameters = list(common.values())
        if each:
            rows = zip(*each.values(), strict=True)
            parameters.append(json.dumps([dict(zip(each, row, strict=True)) for row in rows]))
        statement = statements.insert_statement(tuple(common), tuple(each))
        return {row[0] for row in self._session.run(statement, parameters)}
