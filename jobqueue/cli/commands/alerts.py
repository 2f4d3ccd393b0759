"""``alerts``: lists what fires and what is past, silences it, tests a channel, and evaluates for cron."""

from __future__ import annotations

import argparse
import getpass
from datetime import datetime, timedelta
from typing import Any

from django.core.management.base import CommandError

from jobqueue.alert_settings import alert_settings, are_on
from jobqueue.alerts import evaluate
from jobqueue.alerts.evaluation import is_silenced
from jobqueue.backends import current
from jobqueue.channels.news import DeliveryAttempt, read
from jobqueue.channels.senders import send
from jobqueue.cli import exits
from jobqueue.cli.arguments import Subcommand, length, number
from jobqueue.cli.console import Console
from jobqueue.cli.values import ago, moment, plain
from jobqueue.clock import to_text
from jobqueue.errors import InvalidOption
from jobqueue.handlers.options import reason as check_reason
from jobqueue.handlers.registry import registry
from jobqueue.ids import new_id
from jobqueue.observe.health import Cause, Level
from jobqueue.policy.nearest import did_you_mean
from jobqueue.records.alert import AlertRecord, AlertState, News, Silence
from jobqueue.relay.outbox import waiting_in

_COLUMNS = ("id", "state", "level", "since", "silenced_until", "what")
_EXITS = {Level.WARNING: exits.WARNING, Level.ERROR: exits.ERROR}
_OFF = "Alerts are off: JOBQUEUE['ALERTS'] is empty."


def _add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", nargs="?", choices=sorted(_ACTIONS), default="list", help="Default: list.")
    parser.add_argument("target", nargs="?", metavar="TARGET", help="An alert's id, a rule's name, or a channel.")
    parser.add_argument("--for", type=length, default=timedelta(hours=1), metavar="TIME", dest="length",
                        help="silence: how long, such as 30m, 2h or 1d. Default: 1h.")  # fmt: skip
    parser.add_argument("--reason", default="", metavar="TEXT", help="silence: the reason, which is needed.")
    parser.add_argument("--past", type=number, metavar="N", default=0, help="list: also the last N past alerts.")


def _run(options: dict[str, Any], console: Console) -> int:
    return _ACTIONS[options["action"]](options, console)


def _list(options: dict[str, Any], console: Console) -> int:
    backend = current()
    now, silences = backend.now(), backend.alerts.silences()
    found = [*backend.alerts.open(), *backend.alerts.past(options["past"] or 0)]
    if console.as_json:
        listed = [{**plain(one), "silence": plain(is_silenced(one, silences))} for one in found]
        console.document({"now": plain(now), "on": are_on(), "alerts": listed, "silences": plain(silences)})
    elif found:
        console.table(_COLUMNS, [_row(one, is_silenced(one, silences), now) for one in found])
    for one in silences:
        console.say(f"{one.key} is silenced until {moment(one.until)}: {one.reason}")
    if not found and not console.as_json:
        console.say("No alert fires." if are_on() else _OFF)
    loud = [one.level for one in found if one.state is AlertState.FIRING and not is_silenced(one, silences)]
    return _EXITS.get(Level(min(max(loud), Level.ERROR)), exits.OK) if loud and max(loud) > 0 else exits.OK


def _row(one: AlertRecord, silence: Silence | None, now: datetime) -> list[str]:
    until = "-" if silence is None else moment(silence.until)
    return [one.id, one.state.value, one.facts.level, ago(one.began_at, now), until, one.facts.sentence]


def _silence(options: dict[str, Any], console: Console) -> int:
    key, backend = _key(options), current()
    check_reason("--reason", options["reason"])
    if not options["reason"].strip():
        raise InvalidOption("--reason", "must say why the alert is silenced, for whoever reads it at night")
    if not options["length"]:
        raise InvalidOption("--for", "must be longer than zero")
    silence = Silence(key=key, until=backend.now() + options["length"], reason=options["reason"], author=_author())
    backend.alerts.silence(silence)
    console.say(f"{key} is silenced until {moment(silence.until)}.")
    if console.as_json:
        console.document({"silence": plain(silence)})
    return exits.OK


def _unsilence(options: dict[str, Any], console: Console) -> int:
    key = _key(options)
    was_silenced = current().alerts.unsilence(key)
    console.say(f"{key} is no longer silenced." if was_silenced else f"{key} was not silenced; nothing was changed.")
    if console.as_json:
        console.document({"key": key, "changed": was_silenced})
    return exits.OK


def _key(options: dict[str, Any]) -> str:
    """Return the key that a target names: an alert by its id or key, or a rule."""
    target, backend = options["target"], current()
    if target is None:
        raise CommandError(f"Name what to {options['action']}: the id of an alert, or a rule.", returncode=exits.ERROR)
    if target in list(Cause):
        return str(target)
    found = None if "\0" in target else backend.alerts.get(target)
    known = {one.key for one in backend.alerts.open()} | {one.key for one in backend.alerts.silences()}
    if found is None and target not in known:
        raise InvalidOption("TARGET", f"is neither the id of an alert nor a rule, got {target!r}. {_near(target)}")
    return target if found is None else found.key


def _near(target: str) -> str:
    return did_you_mean(target, list(Cause))


def _test(options: dict[str, Any], console: Console) -> int:
    """Send a test message in this process, and show what the channel answers."""
    settings, name = alert_settings(), options["target"]
    channels = {one.name: one for one in settings.channels}
    if name not in channels:
        raise InvalidOption(
            "TARGET", f"must be a channel of JOBQUEUE['ALERTS'], got {name!r}. {_channels(name, channels)}"
        )
    facts = {"cause": "test", "level": "warning", "sentence": "This is a test of the channel. Nothing is wrong."}
    given = {"id": new_id(), "key": f"test:{name}", **facts, "since": to_text(current().now())}
    try:
        answer = send(channels[name], read(News.TEST, [given], settings.site), DeliveryAttempt(given["id"]))
    except Exception as error:
        raise exits.failure(f"The channel {name!r} failed: {type(error).__name__}: {error}") from error
    console.say(f"The channel {name!r} answered: {answer}")
    if console.as_json:
        console.document({"channel": name, "answer": answer})
    return exits.OK


def _channels(name: object, channels: dict[str, Any]) -> str:
    return did_you_mean(name, channels) if channels else _OFF


def _evaluate(_options: dict[str, Any], console: Console) -> int:
    """Do one evaluation, for hosts where no worker may be up."""
    if not are_on():
        raise exits.failure(_OFF)
    if not registry.names & {"jobqueue.deliver_alerts"}:
        raise exits.failure("This process has no job that delivers alerts: JOBQUEUE['ALERTS'] was empty at its start.")
    backend = current()
    done = evaluate(backend, waiting_in(backend))
    counts = {news.value: done.count(news) for news in (News.FIRED, News.RESOLVED, News.REMINDER)}
    console.say(", ".join(f"{count} {name}" for name, count in counts.items()))
    if console.as_json:
        console.document({"stored": done.is_stored, **counts})
    return exits.OK


def _author() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a user id without a name
        return ""


_ACTIONS = {"list": _list, "silence": _silence, "unsilence": _unsilence, "test": _test, "evaluate": _evaluate}

ALERTS = Subcommand(
    "alerts",
    "show the alerts, silence them, and test the channels",
    """\
silence and unsilence take the id of an alert, or the name of a rule for all its alerts. test sends a message now, and
shows what the channel answers. evaluate does what a worker does every few minutes, for cron on hosts where workers may
be down.

examples:
  manage.py jobqueue alerts
  manage.py jobqueue alerts --past 20 --json
  manage.py jobqueue alerts silence queue_deep --for 2h --reason "the import of the year"
  manage.py jobqueue alerts unsilence queue_deep
  manage.py jobqueue alerts test slack

exit codes:
  0  no alert fires, or all are silenced; done, or nothing had to change
  1  list: a warning fires
  2  list: an error fires; invalid arguments
  3  nothing was done, or the channel failed
""",
    _add,
    _run,
)
