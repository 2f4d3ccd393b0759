"""The process of one trial. It reads the request as JSON and writes the verdict."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from functools import partial
from pathlib import Path

from benchmarks.databases import NoPostgres
from benchmarks.faults.catalogue import catalogue
from benchmarks.faults.laboratory import Laboratory, Trial
from benchmarks.faults.place import ground, prepare
from benchmarks.faults.verdict import Outcome, Verdict
from benchmarks.workers import end_in_order


def main() -> None:
    """Run the trial that the line on standard input requests."""
    end_in_order()
    asked = json.loads(sys.stdin.readline())
    verdict = _tried(Trial(**asked["trial"]), asked["evidence"])
    print(json.dumps({"verdict": verdict.as_json()}), flush=True)


def _tried(trial: Trial, evidence: str | None) -> Verdict:
    fault = catalogue()[trial.fault]
    made = fault.ground or partial(ground, in_own_cluster=fault.own_cluster)
    try:
        with (
            tempfile.TemporaryDirectory(prefix="jobqueue-faults-") as folder,
            made(trial.database) as found,
        ):
            prepare(found.place)
            laboratory = Laboratory(trial, found, Path(folder))
            try:
                verdict = laboratory.try_out(fault)
            finally:
                laboratory.crew.destroy()
            if evidence and verdict.outcome is Outcome.BROKEN:
                shutil.copytree(folder, Path(evidence) / f"{trial.fault}-{trial.database}", dirs_exist_ok=True)
            return verdict
    except NoPostgres as error:
        return Verdict(
            fault=fault.id, title=fault.title, database=trial.database, outcome=Outcome.NOT_RUN, why=(str(error),)
        )


if __name__ == "__main__":
    main()
