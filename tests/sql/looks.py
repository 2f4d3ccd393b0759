"""The frame of the tests of looks: what is read among fifty thousand jobs costs as much as among a thousand."""

from __future__ import annotations

from collections import Counter

from django.db import connections

from tests.conftest import make_sql_backend
from tests.sql.test_plans import FEW, MANY, Explained, Steps, analyse, blocks, costlier, undone

#: The statements that every look has besides.
BESIDES = ("pg_class", "job_queue_pause")
NOTHING: Counter[str] = Counter()


def same_on_sqlite(fresh, crowd, look):
    """Check that a look takes the same steps among few jobs and among many, analysed or not."""
    fresh("default")
    crowd("default", FEW)
    few = _steps(look)
    fresh("default")
    crowd("default", MANY)
    assert costlier(_steps(look), few, one_pass=0) == {}
    analyse("default")
    assert costlier(_steps(look), few, one_pass=0) == {}


def same_on_postgres(fresh, crowd, look, deeper=NOTHING):
    """Check that a look reads the same blocks among few jobs and among many. Yield its plans, analysed or not."""
    fresh("postgres")
    crowd("postgres", FEW)
    few = blocks(plans(look))
    fresh("postgres")
    crowd("postgres", MANY)
    for prepare in (lambda: None, lambda: analyse("postgres")):
        prepare()
        found = plans(look)
        assert costlier(blocks(found), few + deeper, one_pass=0) == {}
        yield found


def plans(look):
    """Have Postgres explain the statements of a look."""
    backend = make_sql_backend("postgres", None)
    explained = Explained("postgres")
    with undone("postgres"):
        look(backend, explained)
    return [one for one in explained.plans if not any(name in one[1] for name in BESIDES)]


def _steps(look):
    backend = make_sql_backend("default", None)
    with undone("default"):
        found = Steps(connections["default"])
        look(backend, found)
    return found
