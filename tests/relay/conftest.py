"""Fixtures of the relay's tests: an outbox in each database, with the other one as the shared database."""

from __future__ import annotations

import pytest
from django.core.management import call_command
from django.db import connections

from jobqueue import backends
from jobqueue.models import Job
from jobqueue.relay.runner import RelayRunner
from jobqueue.worker.options import WorkerOptions
from tests.conftest import TABLES
from tests.worker.conftest import ledger as ledger  # the fixture
from tests.worker.test_database_trouble import server as server


class Ways:
    """Both ends of a relay."""

    def __init__(self, here, there):
        self.here, self.there = here, there

    @property
    def shared(self):
        """The backend of the shared database."""
        return backends.shared()

    def relaying(self, **options):
        """Make a relay that ends when nothing waits."""
        return RelayRunner(backends.current(), self.shared, WorkerOptions(drain=True, **options))

    def relay(self):
        """Relay what there is; return the exit status."""
        return self.relaying().run()

    def waiting(self):
        """List what is still in the outbox, in whatever status, in order of id."""
        return list(Job.objects.using(self.here).order_by("pk").values_list("id", "status"))

    def arrived(self):
        """List what is in the shared database, in order of id."""
        return list(Job.objects.using(self.there).order_by("pk").values_list("id", flat=True))


@pytest.fixture(params=["from sqlite", "from postgres"])
def ways(request, databases, settings):
    here, there = ("default", "postgres") if request.param == "from sqlite" else ("postgres", "default")
    settings.JOBQUEUE = {"DATABASE": here, "RELAY_TO": there}
    yield Ways(here, there)
    connections[there].close()
    del connections[there]  # a relay does not put up with its silence, and other tests do


@pytest.fixture
def to_a_server_of_its_own(server, databases, settings):
    """From SQLite to a Postgres that a test may stop."""
    connections.settings["far"] = connections["postgres"].settings_dict | {
        "HOST": str(server.folder),
        "PORT": "5432",
        "USER": "jobqueue",
        "PASSWORD": "",
        "NAME": "postgres",
    }
    call_command("migrate", "jobqueue", database="far", verbosity=0)
    for table in TABLES:
        table.objects.using("far").all().delete()
    settings.JOBQUEUE = {"DATABASE": "default", "RELAY_TO": "far"}
    yield Ways("default", "far")
    connections["far"].close()
    del connections["far"], connections.settings["far"]
