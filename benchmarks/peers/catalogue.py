"""The contestants, their packages, and the settings they are measured in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any


class League(StrEnum):
    """Who is compared with whom."""

    RAW = "raw SQL"
    BEST = "best setting"
    SLOTS = "50 thread slots"
    TASKS = "by django.tasks"
    INSTALLED = "as installed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """A queue: the name of its adapter, and what its environment needs, pinned."""

    name: str
    title: str
    requirements: tuple[str, ...] = ()
    in_django: bool = False
    note: str = ""


@dataclass(frozen=True, slots=True)
class Setting:
    """One way to run a queue: how many processes are started by hand, and what the adapter is told."""

    label: str
    processes: int = 1
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Contestant:
    """A queue on a store: of its settings the quickest is taken; jobs that sleep may have one of their own."""

    peer: Peer
    store: str
    settings: tuple[Setting, ...]
    league: League = League.BEST
    napping: Setting | None = None
    jobs: int
    singly: int = 1_000
    analysed: bool = True

    @property
    def is_ours(self) -> bool:
        """Tell this queue from its peers."""
        return self.peer is OURS

    @property
    def title(self) -> str:
        """Name it in a table."""
        return self.peer.title if self.league in (League.RAW, League.BEST) else f"{self.peer.title}, {self.league}"


_DJANGO = ("Django==6.1.3", "psycopg[binary]==3.3.9")
_REDIS = "redis==8.1.0"

RAW = Peer(name="raw", title="raw SQL", note="the bare statements of one process, settling and claiming by 50")
OURS = Peer(name="ours", title="jobqueue", in_django=True, note="pydantic, a key for each job enqueued alone, history")
OUR_TASKS = Peer(name="our_tasks", title="jobqueue", in_django=True, note="one attempt, Django's signals and log")
OX = Peer(name="ox", title="django-ox", requirements=("django-ox==1.9.1", *_DJANGO), in_django=True)
TASKS_DB = Peer(
    name="tasks_db",
    title="django-tasks-db",
    requirements=("django-tasks-db==0.13.0", *_DJANGO),
    in_django=True,
)
DJ_QUEUE = Peer(
    name="dj_queue",
    title="dj-queue",
    requirements=("dj-queue==0.14.2", *_DJANGO),
    in_django=True,
    note="in its best setting ended jobs are deleted",
)
Q2 = Peer(
    name="q2",
    title="django-q2",
    requirements=("django-q2==1.11.1", *_DJANGO),
    in_django=True,
    note="in its best setting without results",
)
PROCRASTINATE = Peer(
    name="procrastinate",
    title="Procrastinate",
    requirements=("procrastinate==3.10.0", "psycopg[binary]==3.3.9", "psycopg-pool==3.3.3", "uvloop==0.23.0"),
    note="coroutines, ended jobs are deleted",
)
PGQUEUER = Peer(
    name="pgqueuer",
    title="PgQueuer",
    requirements=("pgqueuer==1.6.0", "asyncpg==0.32.0", "uvloop==0.23.0"),
    note="coroutines, payloads left undecoded, ended jobs leave the table for a log",
)
HUEY = Peer(
    name="huey",
    title="Huey",
    requirements=("huey==3.5.4", _REDIS),
    note="no results; a job leaves the store before it runs, and a crash loses it",
)
CELERY = Peer(
    name="celery",
    title="Celery",
    requirements=("celery[redis]==5.7.0", _REDIS),
    note="no results; acknowledged before it runs, and a crash loses it",
)
DRAMATIQ = Peer(name="dramatiq", title="Dramatiq", requirements=("dramatiq==2.2.1", _REDIS), note="no results")
RQ = Peer(name="rq", title="RQ", requirements=("rq==2.12.0", _REDIS), note="no results, no fork for each job")
SAQ = Peer(
    name="saq",
    title="saq",
    requirements=("saq==0.26.4", _REDIS, "hiredis==3.5.0", "typing-extensions==4.16.0", "uvloop==0.23.0"),
    note="coroutines, no results",
)
PEERS = {
    peer.name: peer
    for peer in (OUR_TASKS, OX, TASKS_DB, DJ_QUEUE, Q2, PROCRASTINATE, PGQUEUER, HUEY, CELERY, DRAMATIQ, RQ, SAQ)
}
AS_INSTALLED = Setting("as installed", options={"as_installed": True})


def contestants(names: frozenset[str], vendors: frozenset[str]) -> Iterator[Contestant]:
    """Yield who takes part: this queue and the bare SQL always, of the peers those named."""
    for contestant in (*_raw(), *_ours(), *_our_tasks(), *_django_peers(), *_others()):
        if contestant.peer.name in names | {RAW.name, OURS.name} and contestant.store.partition("-")[0] in vendors:
            yield contestant


def _raw() -> Iterator[Contestant]:
    for store in ("sqlite-normal", "sqlite-full", "postgres"):
        setting = Setting("by 50", options={"limit": 50})
        yield Contestant(peer=RAW, store=store, settings=(setting,), league=League.RAW, jobs=20_000, analysed=False)


def _ours() -> Iterator[Contestant]:
    for store in ("sqlite", "postgres-new"):
        yield Contestant(
            peer=OURS, store=store, settings=(AS_INSTALLED,), league=League.INSTALLED, jobs=10_000, analysed=False
        )
    for store in ("sqlite-normal", "sqlite-full", "postgres"):
        threads = Setting("50 threads", options={"command": {"concurrency": 50, "verbosity": 0}})
        coroutines = tuple(
            Setting(
                f"{slots} coroutines",
                options={"coroutines": True, "command": {"concurrency": slots, "verbosity": 0}},
            )
            for slots in (200, 500, 1_000)
        )
        yield Contestant(peer=OURS, store=store, settings=(threads,), league=League.SLOTS, jobs=20_000, analysed=False)
        # Writers of SQLite stand in line; on Postgres a second worker is a second server process that works.
        several = (*coroutines, replace(coroutines[1], label=f"2 workers of {coroutines[1].label}", processes=2))
        yield Contestant(
            peer=OURS,
            store=store,
            settings=several if store == "postgres" else coroutines,
            napping=coroutines[1],
            jobs=20_000,
            analysed=False,
        )


def _counted(number: int, kind: str) -> str:
    """Say how many there are of something."""
    return f"{number} {kind}" if number == 1 else f"{number} {kind}{'es' if kind.endswith('s') else 's'}"


def _our_tasks() -> Iterator[Contestant]:
    """Yield this queue as Django's tasks see it, with the slots that threads allow."""
    setting = Setting("50 threads", options={"command": {"concurrency": 50, "verbosity": 0}})
    for store in ("sqlite-normal", "sqlite-full", "postgres"):
        yield Contestant(
            peer=OUR_TASKS, store=store, settings=(setting,), league=League.TASKS, jobs=10_000, analysed=False
        )


def _several(processes: int, slots: int, kind: str) -> str:
    """Say how many slots there are in how many processes."""
    each = _counted(slots, kind)
    return each if processes == 1 else f"{processes} x {each}"


def _ox(threads: int, processes: int = 1) -> Setting:
    options = {"concurrency": threads, "interval": 0.01, "verbosity": 0}
    return Setting(_several(processes, threads, "thread"), processes, {"command": options})


def _tasks_db(processes: int) -> Setting:
    options = {"interval": 0.01, "startup_delay": False, "reload": False, "verbosity": 0}
    return Setting(_counted(processes, "process"), processes, {"command": options})


def _dj_queue(threads: int, processes: int = 1) -> Setting:
    worker = {"threads": threads, "processes": processes, "polling_interval": 0.01, "prefetch_multiplier": 4}
    options = {"workers": [worker], "preserve_finished_jobs": False}
    command = {"only_work": True, "verbosity": 0}
    return Setting(_several(processes, threads, "thread"), options={"backend": options, "command": command})


def _q2(workers: int) -> Setting:
    cluster = {"workers": workers, "bulk": 50, "queue_limit": 200, "poll": 0.01, "save_limit": -1, "recycle": 100_000}
    quiet = {"scheduler": False, "log_level": "ERROR", "timeout": 60, "retry": 90}
    return Setting(f"{workers} workers, bulk 50", options={"cluster": cluster | quiet})


def _django_peers() -> Iterator[Contestant]:
    several: dict[Peer, tuple[tuple[Setting, ...], Setting, int]] = {
        OX: ((_ox(1), _ox(10), _ox(5, processes=2)), _ox(50), 400),
        TASKS_DB: ((_tasks_db(1), _tasks_db(2)), _tasks_db(4), 400),
        DJ_QUEUE: ((_dj_queue(1), _dj_queue(5), _dj_queue(5, processes=2)), _dj_queue(25, processes=2), 400),
        Q2: ((_q2(2), _q2(4)), _q2(10), 300),
    }
    for peer, (settings, napping, as_installed) in several.items():
        for store in ("sqlite-normal", "sqlite-full", "postgres"):
            yield Contestant(peer=peer, store=store, settings=settings, napping=napping, jobs=1_500, singly=500)
        for store in ("sqlite", "postgres-new"):
            yield Contestant(
                peer=peer,
                store=store,
                settings=(AS_INSTALLED,),
                league=League.INSTALLED,
                jobs=as_installed,
                singly=200,
                analysed=False,
            )


def _procrastinate(slots: int, processes: int) -> Setting:
    worker = {"concurrency": slots, "delete_jobs": "always"}
    return Setting(_several(processes, slots, "coroutine"), processes, {"worker": worker})


def _pgqueuer(batch: int, processes: int) -> Setting:
    return Setting(f"{processes} x batches of {batch}", processes, {"batch_size": batch})


def _huey(workers: int, kind: str) -> Setting:
    consumer = {"workers": workers, "worker_type": kind, "initial_delay": 0.01, "max_delay": 0.01}
    return Setting(_counted(workers, kind), options={"consumer": consumer})


def _celery(*command: str, processes: int, label: str) -> Setting:
    return Setting(label, processes, {"command": command, "prefetch": 128})


def _dramatiq(threads: int, processes: int, prefetch: int = 256) -> Setting:
    options = {"threads": threads, "prefetch": prefetch, "timeout": 5}
    return Setting(f"{_several(processes, threads, 'thread')}, prefetch {prefetch}", processes, options)


def _saq(slots: int, processes: int) -> Setting:
    return Setting(_several(processes, slots, "coroutine"), processes, {"concurrency": slots})


def _others() -> Iterator[Contestant]:
    yield Contestant(
        peer=PROCRASTINATE,
        store="postgres",
        settings=(_procrastinate(20, 2), _procrastinate(50, 1)),
        napping=_procrastinate(50, 2),
        jobs=3_000,
    )
    batches = (_pgqueuer(500, 2), _pgqueuer(1_000, 2), _pgqueuer(500, 1))
    yield Contestant(peer=PGQUEUER, store="postgres", settings=batches, jobs=20_000)
    for store in ("sqlite-normal", "sqlite-full", "redis"):
        settings = (_huey(2, "process"), _huey(1, "thread"), _huey(2, "thread"))
        yield Contestant(peer=HUEY, store=store, settings=settings, napping=_huey(50, "thread"), jobs=8_000)
    solo = _celery("--pool=solo", processes=2, label="2 x solo, prefetch 128")
    threads = _celery("--pool=threads", "--concurrency=50", processes=1, label="50 threads, prefetch 128")
    yield Contestant(peer=CELERY, store="redis", settings=(solo, threads), napping=threads, jobs=4_000)
    settings = (_dramatiq(4, 2), _dramatiq(1, 2), _dramatiq(8, 2))
    yield Contestant(peer=DRAMATIQ, store="redis", settings=settings, napping=_dramatiq(25, 2), jobs=10_000)
    yield Contestant(
        peer=RQ, store="redis", settings=(Setting("2 x SimpleWorker", 2), Setting("SimpleWorker")), jobs=1_500
    )
    yield Contestant(peer=SAQ, store="redis", settings=(_saq(50, 2), _saq(10, 2)), napping=_saq(50, 2), jobs=5_000)
