"""``manage.py judge_sanitiser``: how much private data the rules find, and how much else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from example_project.capture.judging import LINES, Judgement, Verdict, judge, read


class Command(BaseCommand):
    """Prints precision and recall. The exit status says whether they are good enough."""

    help = (
        "Judge the sanitiser's rules by lines in which the private data is marked, and print precision and recall, in "
        "all and by category, and each mistake. Exit status: 0 if both reach --least, 1 if not."
    )
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--lines", type=Path, default=LINES, metavar="FILE", help="Other lines, marked likewise.")
        parser.add_argument("--least", type=float, default=0.95, metavar="SHARE", help="What is good enough: 0.95.")

    def handle(self, *_: Any, **options: Any) -> None:
        judgement = judge(list(read(options["lines"])))
        self._tell(judgement)
        overall = judgement.overall
        if min(overall.precision, overall.recall) < options["least"]:
            raise CommandError(f"Precision or recall is below {options['least']:.0%}.")

    def _tell(self, judgement: Judgement) -> None:
        self.stdout.write(f"{judgement.lines} lines, of which {judgement.negative} hold nothing private\n\n")
        self.stdout.write(f"{'':10} {'precision':>10} {'recall':>10} {'right':>6} {'wrong':>6} {'missed':>7}")
        for name, verdict in {**judgement.by_category, "all": judgement.overall}.items():
            self.stdout.write(_line(name, verdict))
        for text, (category, original) in judgement.wrong:
            self.stdout.write(f"\nwrong: {original!r} as {category}, in {text!r}", ending="")
        for text, (category, original) in judgement.missed:
            self.stdout.write(f"\nmissed: {original!r} as {category}, in {text!r}", ending="")
        self.stdout.write("")


def _line(name: str, verdict: Verdict) -> str:
    return (
        f"{name:10} {verdict.precision:>10.1%} {verdict.recall:>10.1%} "
        f"{verdict.right:>6} {verdict.wrong:>6} {verdict.missed:>7}"
    )
