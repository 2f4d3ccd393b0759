"""``manage.py demo``: a day of orders and conversations, a real worker, and the totals, which must match."""

from __future__ import annotations

import os
import secrets
import signal
import sys
from time import sleep
from typing import Any

from django.contrib.auth.models import User
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DatabaseError

from example_project.shop.hired import OPTIONS, HiredWorker
from example_project.shop.live import Live
from example_project.shop.place import DEFAULT, Place, settle
from example_project.shop.talk import talk
from example_project.shop.tally import Tally, jobs_of, statuses_of, take
from example_project.shop.trade import Day, trade
from jobqueue import JobRecord, JobStatus, backends, get
from jobqueue.clock import SYSTEM
from jobqueue.records import Ending
from jobqueue.states import ACTIVE

LOOK_EVERY = 0.1
OTHERS_GRACE = 15.0
INTERRUPTED = 130
USER = "demo"


class Command(BaseCommand):
    """Runs the demo in three steps. The exit status says whether its totals match."""

    help = (
        "Enqueue a few hundred jobs inside transactions, run them with a real worker, and check that nothing was lost. "
        "A second run adds to the first. Exit status: 0 if the sums add up, 1 if not, 130 if interrupted."
    )
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--database",
            metavar="FILE",
            help=f"The SQLite file to use. Default: {DEFAULT.name} beside manage.py. "
            "If EXAMPLE_POSTGRES is set, that Postgres database is used.",
        )

    def handle(self, *_: Any, **options: Any) -> None:
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, _interrupt)
        try:
            self._run(settle(options["database"]), options["verbosity"])
        except DatabaseError as error:
            raise CommandError(f"The database failed: {' '.join(str(error).split())}") from error
        except KeyboardInterrupt:
            self.stderr.write("\nInterrupted. The worker has ended too; unfinished jobs wait in the database.")
            sys.exit(INTERRUPTED)
        except BrokenPipeError:
            # The reader has closed the pipe, so the rest of the buffer has nowhere to go.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(1)

    def _run(self, place: Place, verbosity: int) -> None:
        self.stdout.write(f"The database: {place.words}")
        call_command("migrate", verbosity=0, interactive=False)
        day = self._trade()
        self._work(day, verbosity)
        tally = take(day)
        self._sum_up(tally)
        mistakes = list(tally.mistakes())
        if mistakes:
            raise CommandError("The sums do not add up. " + " ".join(mistakes))
        self.stdout.write(self.style.SUCCESS("   The sums add up."))
        self._lead_on(day, place)

    # The three steps

    def _trade(self) -> Day:
        self._head("1. Customers order and write; each order and each conversation is one transaction with its jobs")
        day = trade(f"demo-{secrets.token_hex(4)}")
        talk(day)
        self.stdout.write(
            f"   {len(day.orders)} orders and {len(day.conversations)} conversations committed, with "
            f"{len(day.accepted)} jobs; {day.duplicates} second clicks found the first one's job.\n"
            f"   {len(day.abandoned_orders)} orders and {len(day.abandoned_conversations)} conversation rolled back "
            f"after they had enqueued {len(day.abandoned_jobs)} jobs."
        )
        return day

    def _work(self, day: Day, verbosity: int) -> None:
        self._head(f"2. A worker runs the jobs: manage.py runworker {' '.join(OPTIONS)}")
        live = Live(self.stdout)
        with HiredWorker() as worker:
            status = None
            while status is None:
                status = worker.wait(LOOK_EVERY)
                self._pass_on(live, worker.news(), verbosity)
                live.show(statuses_of(day.run), _importing(day.run))
        self._pass_on(live, worker.news(), verbosity)
        _wait_for_others(day.run)
        live.show(statuses_of(day.run), last=True)
        if status:
            said = "\n".join(worker.lines[-20:])
            raise CommandError(f"The worker ended with status {status}. It said:\n{said}")

    def _pass_on(self, live: Live, lines: list[str], verbosity: int) -> None:
        """Show the worker's errors, or its whole output with -v 2."""
        for line in lines:
            if verbosity > 1 or " ERROR " in line:
                live.note(f"   {line}")

    def _sum_up(self, tally: Tally) -> None:
        self._head("3. The sums")
        for sign, number, words in (
            (
                " ",
                tally.total,
                f"jobs accepted: {tally.accepted} by customers, {tally.follow_ups} by jobs that completed",
            ),
            ("=", tally.completed, "completed"),
            ("+", tally.dead, "dead letters, which wait for an operator"),
            (" ", tally.lost, "lost"),
            (" ", tally.survivors, "jobs, orders and conversations left by the transactions that rolled back"),
            (" ", tally.bookings, f"bookings of stock, one for each of {tally.orders_booked} orders"),
            (" ", tally.uploads, f"uploads with a transaction each, one for each of {tally.learnings} learnings"),
            (" ", tally.private_messages, "messages that hold private data"),
        ):
            self.stdout.write(f"   {sign} {number:4}  {words}")
        failed, snoozed = tally.endings[Ending.FAILED], tally.endings[Ending.SNOOZED]
        self.stdout.write(
            f"   On the way {failed} attempts failed and {snoozed} snoozed. One job killed its process; "
            f"{tally.cleared} others that ran in it went back\n   with their attempt, ran alone and completed. The "
            "culprit killed again, alone, and is a dead letter."
        )

    def _lead_on(self, day: Day, place: Place) -> None:
        dead = _dead_letter(day.run)
        if dead is not None:
            self._head("A dead letter")
            last = dead.history[-1]
            self.stdout.write(f"   {dead.type} {dead.id}, after {dead.attempts} attempts")
            self.stdout.write(self.style.ERROR(f"   {last.error_class}: {last.message}"))
            self.stdout.write(
                "   Give the order an address in the admin, then retry the job and have it run:\n"
                f"   {place.command('jobqueue', 'retry', dead.id)}\n"
                f"   {place.command('runworker', '--drain')}"
            )
        password = _log_in()
        self._head("The admin")
        self.stdout.write(
            f"   {place.command('runserver')}\n"
            f"   http://127.0.0.1:8000/admin/   user {USER}, password {password} (new with each run)"
        )

    def _head(self, text: str) -> None:
        self.stdout.write("\n" + self.style.MIGRATE_HEADING(text))
        self.stdout.flush()


def _interrupt(_number: int, _frame: object) -> None:
    raise KeyboardInterrupt


def _wait_for_others(run: str) -> None:
    """Wait for other workers on this database to finish the jobs that they have taken."""
    backend, until = backends.current(), SYSTEM.monotonic() + OTHERS_GRACE
    while SYSTEM.monotonic() < until and jobs_of(run).filter(status__in=ACTIVE).exists():
        if not any(one.is_alive(backend.now()) for one in backend.workers.all()):
            return
        sleep(LOOK_EVERY)


def _importing(run: str) -> str:
    """Return the progress of the catalogue's import."""
    running = jobs_of(run).filter(type="import_catalogue", status=JobStatus.IN_PROGRESS.value)
    report = running.values_list("progress", flat=True).first()
    return f"; catalogue {report['percent']:.0f} %" if report else ""


def _dead_letter(run: str) -> JobRecord | None:
    found = jobs_of(run).filter(status=JobStatus.DEAD_LETTER.value, type="ship_order").order_by("id").first()
    return get(found.pk) if found else None


def _log_in() -> str:
    """Create the demo's superuser, or set a new password, which is stored nowhere else."""
    password = secrets.token_urlsafe(9)
    user, _ = User.objects.get_or_create(username=USER)
    user.is_staff = user.is_superuser = True
    user.set_password(password)
    user.save()
    return password
