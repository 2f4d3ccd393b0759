"""The job ``run_command``, which runs an allowed management command and keeps its output."""

from __future__ import annotations

from django.core.management import call_command, get_commands, load_command_class
from django.core.management.base import BaseCommand, CommandError
from pydantic import BaseModel, ConfigDict

from jobqueue import conf
from jobqueue.api import job
from jobqueue.contrib.commands.command import AsyncCommand
from jobqueue.contrib.commands.output import LastOutput
from jobqueue.errors import Discard
from jobqueue.policy.retry import Exponential

#: How many characters of the output are in the error of a failed command.
IN_ERROR = 1_000


class CommandFailed(Exception):
    """A command ended with an exit code that is not zero."""


class RunCommand(BaseModel):
    """A command as it is typed: its name, and its arguments word by word."""

    model_config = ConfigDict(extra="forbid")

    command: str
    arguments: list[str] = []


@job(max_retries=4, retry=Exponential(base=5, cap=600, jitter=0), timeout=3600, editable=False)
def run_command(payload: RunCommand) -> dict[str, object]:
    """Run a command in this process, like ``call_command``, and return the end of its output.

    A CommandError or an exit code fails the attempt; it is repeated after 10, 20 and 40 seconds. A command that isn't
    allowed, or that doesn't accept the arguments, becomes a dead letter at once.
    """
    command = _allowed(payload)
    output = LastOutput(conf.get("COMMAND_OUTPUT_BYTES"))
    # The worker may have a terminal, but stored output should have no colours.
    plain = {} if {"--force-color", "--no-color"} & {*payload.arguments} else {"no_color": True}
    try:
        call_command(command, *payload.arguments, stdout=output, stderr=output, **plain)
    except CommandError as error:
        error.args = (_failure(payload.command, error.returncode, str(error), output),)
        raise
    except SystemExit as end:
        if end.code not in (None, 0):
            code, why = (end.code, "") if isinstance(end.code, int) else (1, str(end.code))
            raise CommandFailed(_failure(payload.command, code, why, output)).with_traceback(end.__traceback__) from end
    return {"output": output.text, "left_out": output.left_out}


def _allowed(payload: RunCommand) -> BaseCommand:
    """Return the command after it has parsed its arguments."""
    name = payload.command
    if name not in conf.get("COMMANDS"):
        raise Discard(f"The command {name!r} is not allowed: JOBQUEUE['COMMANDS'] does not list it.")
    if name not in get_commands():
        raise Discard(f"There is no command {name!r} in this release.")
    app = get_commands()[name]
    command = app if isinstance(app, BaseCommand) else load_command_class(app, name)
    try:
        read = command.create_parser("manage.py", name).parse_args(payload.arguments)
    except CommandError as error:
        raise Discard(f"The command {name!r} does not accept these arguments. {error}") from error
    except SystemExit:
        return command  # --version and --help exit here and in the run
    if isinstance(command, AsyncCommand) and read.run_async:
        raise Discard(f"The command {name!r} already runs as a job: leave out --async.")
    return command


def _failure(name: str, code: int, why: str, output: LastOutput) -> str:
    said = f": {why}" if why else "."
    end = output.text[-IN_ERROR:].strip()
    return f"The command {name!r} failed with exit code {code}{said}" + (
        f"\nThe end of its output:\n{end}" if end else ""
    )
