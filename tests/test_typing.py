"""Tests of the types that users of the package see: mypy, strict, on a small application."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

# Each line that mypy shall speak of says so: `# E:` with the error's code, `# R:` with the type revealed.
APPLICATION = """
from __future__ import annotations

from datetime import timedelta
from typing import Any, Unpack

from pydantic import BaseModel

import jobqueue
from jobqueue import Exponential, Handler, JobContext, JobOptions, Receipt, job


class Resize(BaseModel):
    image_id: int
    width: int = 800


class Other(BaseModel):
    name: str


@job
def send_welcome(user_id: int, language: str = "en") -> str:
    return f"{user_id} {language}"


@job("greet.v2", aliases=["greet"], delay=timedelta(seconds=5))
def greet(ctx: JobContext, name: str) -> str:
    return f"hello {name} from {ctx.job_id}"


@job
async def fetch(ctx: JobContext, url: str) -> bytes:
    return url.encode()


@job(queue="images", retry=Exponential(base=2), retry_on=(OSError,))
def resize(payload: Resize, ctx: JobContext) -> dict[str, int]:
    return {"width": payload.width}


@job
def crop(payload: Resize) -> None: ...


@job
def anything(payload: dict[str, Any]) -> None: ...


@job
def tidy_up() -> None: ...


@job
async def measure(payload: Resize) -> list[int]:
    return [payload.width]


@job(queue="mail", delay=timedelta(minutes=1))
def describe(payload: Resize) -> Other:
    return Other(name=str(payload.width))


# A plain signature is enqueue's own.
send_welcome.enqueue(7)
send_welcome.enqueue(user_id=7, language="de")
send_welcome.enqueue("seven")  # E: arg-type
send_welcome.enqueue(user_id="seven")  # E: arg-type
send_welcome.enqueue()  # E: call-arg
send_welcome.enqueue(7, langage="de")  # E: call-arg
send_welcome.using(priority=1).enqueue("seven")  # E: arg-type
send_welcome.draft("seven")  # E: arg-type
tidy_up.enqueue()
tidy_up.enqueue(7)  # E: call-arg

# A context that comes first is left out.
greet.enqueue("Ada")
greet.enqueue(name="Ada")
greet.enqueue(7)  # E: arg-type
greet.using(tenant="acme").enqueue(name=7)  # E: arg-type
fetch.enqueue(url="https://example.org")
fetch.enqueue(url=7)  # E: arg-type

# A model is given whole or as its fields.
resize.enqueue(Resize(image_id=7))
resize.enqueue(image_id=7, width=1)
resize.using(priority=1).enqueue(Resize(image_id=7))
resize.using(priority=1).enqueue(image_id=7)
resize.enqueue(Other(name="x"))  # E: call-overload
resize.enqueue(7)  # E: call-overload
crop.enqueue(Resize(image_id=7))
crop.enqueue(Other(name="x"))  # E: call-overload
resize.draft(Resize(image_id=7))
resize.draft(Other(name="x"))  # E: call-overload
anything.enqueue({"a": [1, None]})
anything.enqueue(7)  # E: arg-type

# An option is what it is called, and of its type.
send_welcome.using(priority=1, queue="mail", delay=5, tenant="acme", workspace="blue", idempotency_key="a").enqueue(7)
send_welcome.using(priorty=1)  # E: call-arg
send_welcome.using(priority="high")  # E: arg-type
send_welcome.using(delay="soon")  # E: arg-type
resize.using(quue="mail")  # E: call-arg
jobqueue.enqueue("send_welcome", {"user_id": 7}, tennant="acme")  # E: call-arg
jobqueue.enqueue_on_commit(send_welcome, {"user_id": 7}, priorty=1)  # E: call-arg


def passed_on(**options: Unpack[JobOptions]) -> Receipt:
    return send_welcome.using(**options).enqueue(7)


def checked_later(options: dict[str, Any]) -> Handler[..., str, ...]:
    return send_welcome.using(**options)


# What comes back.
reveal_type(send_welcome.enqueue(7))  # R: Receipt[str]
reveal_type(send_welcome.enqueue(7).result())  # R: str
reveal_type(send_welcome.using(priority=1).enqueue(7).result(timeout=5))  # R: str
reveal_type(greet.enqueue("Ada").result())  # R: str
reveal_type(fetch.enqueue(url="https://example.org").result())  # R: bytes
reveal_type(measure.enqueue(image_id=7).result())  # R: list[int]
reveal_type(describe.using(priority=1).enqueue(image_id=7).result())  # R: Other
reveal_type(send_welcome.enqueue_many([{"user_id": 7}])[0].result())  # R: str
reveal_type(jobqueue.enqueue("send_welcome").result())  # R: Any
send_welcome.enqueue(7).result().nmae  # E: attr-defined
describe.enqueue(image_id=7).result().nmae  # E: attr-defined
describe.enqueue(image_id=7).result(timout=5)  # E: call-arg
reveal_type(send_welcome.enqueue(7).id)  # R: str
reveal_type(resize.enqueue(image_id=7).created)  # R: bool
reveal_type(resize.enqueue_many([Resize(image_id=7)]))  # R: list[Receipt[dict[str, int]]]
reveal_type(send_welcome.draft(7))  # R: Draft
reveal_type(jobqueue.enqueue("send_welcome", {"user_id": 7}))  # R: Receipt[Any]
reveal_type(jobqueue.get("01J").status)  # R: JobStatus

# The function stays what it is.
reveal_type(send_welcome(7))  # R: str
send_welcome("seven")  # E: arg-type


async def view(context: JobContext) -> None:
    reveal_type(greet(context, "Ada"))  # R: str
    reveal_type(await fetch(context, "https://example.org"))  # R: bytes
    reveal_type(resize(Resize(image_id=7), context))  # R: dict[str, int]
    reveal_type(await send_welcome.aenqueue(7))  # R: Receipt[str]
    reveal_type(await (await send_welcome.aenqueue(7)).aresult())  # R: str
    reveal_type(await (await measure.aenqueue(image_id=7)))  # R: JobRecord
    reveal_type(await describe.aenqueue_many([{"image_id": 7}]))  # R: list[Receipt[Other]]
    reveal_type(await jobqueue.aenqueue_many([send_welcome.draft(7)]))  # R: list[Receipt[Any]]
    reveal_type((await jobqueue.aget("01J")).status)  # R: JobStatus
    await send_welcome.aenqueue("seven")  # E: arg-type
    await resize.aenqueue(image_id=7)
    await resize.aenqueue(Other(name="x"))  # E: call-overload
    resize(Other(name="x"), context)  # E: arg-type


# A comparison takes a payload and a result, and returns words or nothing.
@crop.reconciler(subject=lambda payload: str(payload.image_id))
def compare(payload: Resize, result: Any) -> str | None:
    return None


@crop.reconciler()  # E: type-var
def compare_carelessly(payload: Resize, result: Any) -> bool:
    return True


# Mistakes in the definition.
@job(timout=5)  # E: call-overload
def hasty() -> None: ...


@job(retry_on="OSError")  # E: call-overload
def careless() -> None: ...
"""


def _expected():
    """What the comments ask for, by line: error codes and revealed types."""
    marks = {}
    for number, line in enumerate(APPLICATION.splitlines(), start=1):
        mark = re.search(r"# ([ER]): (.+)$", line)
        if mark:
            marks[number] = (mark[1], mark[2])
    return marks


def _spoken(output):
    """What mypy said, in the same words: the first error of a line, and types without their modules."""
    said = {}
    for number, kind, message in re.findall(r"^application\.py:(\d+): (error|note): (.*)$", output, re.MULTILINE):
        code = re.search(r"\[([\w-]+)\]$", message)
        revealed = re.fullmatch(r'Revealed type is "(.*)"', message)
        if kind == "error":
            said.setdefault(int(number), ("E", code[1] if code else message))
        elif revealed:
            said[int(number)] = ("R", re.sub(r"\w+\.", "", revealed[1]))
    return said


@pytest.mark.timeout(300)  # mypy reads Django and pydantic from nothing
def test_a_type_checker_says_what_a_user_should_hear(tmp_path):
    (tmp_path / "application.py").write_text(APPLICATION, encoding="utf-8")
    (tmp_path / "mypy.ini").write_text("[mypy]\nstrict = True\nfollow_imports = silent\n", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--no-error-summary", "--cache-dir", "cache", "application.py"],
        cwd=tmp_path,
        env={"MYPYPATH": str(ROOT), "PATH": ""},
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert done.stderr == ""
    assert _spoken(done.stdout) == _expected(), done.stdout


def test_the_package_says_that_it_is_typed():
    assert (ROOT / "jobqueue" / "py.typed").exists()
