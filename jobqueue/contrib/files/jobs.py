"""The jobs ``create_file`` and ``delete_file``. Running them twice has the same result as running them once."""

from __future__ import annotations

import base64
import binascii
import hashlib
from typing import Annotated, Any, Literal, NoReturn

from pydantic import AfterValidator, BaseModel, ConfigDict, model_validator

from jobqueue import conf
from jobqueue.api import job
from jobqueue.contrib.files.rooted import Folder, NotAFile, folder_of
from jobqueue.errors import Discard
from jobqueue.handlers.context import JobContext
from jobqueue.ids import portable

LONGEST_NAME = 255
LONGEST_PATH = 4_000
#: The prefix of unfinished files. No part of a job's path may have it.
MARK = ".jobqueue-"
_EARLIER = 20


def _path(path: str) -> str:
    """Validate a path: relative, with forward slashes, and in its shortest form."""
    parts = path.split("/")
    if not path or path.startswith("/") or any(part in ("", ".", "..") for part in parts):
        raise ValueError("must be a relative path without empty parts, '.' and '..'")
    if not path.isprintable() or "\\" in path:
        raise ValueError("must be printable, and without backslashes")
    if len(path.encode()) > LONGEST_PATH or any(len(part.encode()) > LONGEST_NAME for part in parts):
        raise ValueError(f"must have at most {LONGEST_PATH} bytes, and {LONGEST_NAME} in each part")
    if any(part.casefold().startswith(MARK) for part in parts):  # some file systems are case-insensitive
        raise ValueError(f"must have no part that begins with {MARK}, the prefix of unfinished files")
    return path


Path = Annotated[str, AfterValidator(_path)]


class CreateFile(BaseModel):
    """A file to create: its path below the root, and its content. ``base64`` is for binary content."""

    model_config = ConfigDict(extra="forbid")

    path: Path
    content: str
    encoding: Literal["utf-8", "base64"] = "utf-8"
    overwrite: bool = False

    @model_validator(mode="after")
    def _is_base64(self) -> CreateFile:
        if self.encoding == "base64":
            try:
                base64.b64decode(self.content, validate=True)
            except binascii.Error as error:
                raise ValueError("content is not base64") from error
        return self

    def data(self) -> bytes:
        """Return the content as bytes."""
        return self.content.encode() if self.encoding == "utf-8" else base64.b64decode(self.content)


class DeleteFile(BaseModel):
    """A file to delete. ``require_exists`` makes a missing file an error."""

    model_config = ConfigDict(extra="forbid")

    path: Path
    require_exists: bool = False


@job(editable=False)
def create_file(payload: CreateFile, ctx: JobContext) -> dict[str, object]:
    """Write a file below the root. Other processes see either the complete new file or the previous one.

    If the file already has the same content, that is a success. Other content is an error without a retry, unless
    ``overwrite`` is set.
    """
    data = payload.data()
    try:
        with folder_of(_root(), payload.path, make=True) as (folder, name):
            _tidy(folder, ctx)
            changed = _is_different(folder, name, data) and _store(folder, name, data, payload.overwrite, ctx)
            folder.keep()
    except NotAFile as error:
        raise Discard(f"The file cannot be written. {error}") from error
    return {"changed": changed, "bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}


@job(editable=False)
def delete_file(payload: DeleteFile, ctx: JobContext) -> dict[str, object]:
    """Delete a file below the root. A missing file is a success, also if an earlier attempt deleted it."""
    try:
        with folder_of(_root(), payload.path) as (folder, name):
            removed = folder.remove(name)
            folder.keep()
    except FileNotFoundError:
        _root_is_there()
        removed = False
    except NotAFile as error:
        raise Discard(f"The file cannot be removed. {error}") from error
    if not removed and payload.require_exists and ctx.fence <= 1:
        raise Discard("There is no such file, but the job requires one.")
    return {"changed": removed}


def _root() -> str:
    root = conf.get("FILES_ROOT")
    if root is None:
        raise Discard("No file job may run: JOBQUEUE['FILES_ROOT'] is not set.")
    return str(root)


def _root_is_there() -> None:
    """Raise if the root is missing: if a volume isn't mounted, all files seem to be missing."""
    with folder_of(_root(), "any"):
        pass


def _is_different(folder: Folder, name: str, data: bytes) -> bool:
    return folder.read(name, len(data) + 1) != data


def _store(folder: Folder, name: str, data: bytes, overwrite: bool, ctx: JobContext) -> bool:
    """Write the file beside its place, then move it there in one step."""
    mode = folder.mode(name)
    if mode is not None and not overwrite:
        _refuse()
    draft = _draft(ctx, ctx.fence)
    try:
        folder.write(draft, data, mode)
        if overwrite:
            folder.replace(draft, name)
        elif not folder.place(draft, name) and _is_different(folder, name, data):
            _refuse()
    finally:
        folder.drop(draft)
    return True


def _draft(ctx: JobContext, fence: int) -> str:
    """Return the name of an unfinished file, one for each claim, so that late workers can't mix their contents."""
    return f"{MARK}{portable(ctx.job_id)}-{fence}"


def _tidy(folder: Folder, ctx: JobContext) -> None:
    """Remove unfinished files of earlier attempts that were killed."""
    for fence in range(max(1, ctx.fence - _EARLIER), ctx.fence + 1):
        folder.drop(_draft(ctx, fence))


def _refuse() -> NoReturn:
    raise Discard("The file exists with other content. Enqueue the job with overwrite=True to replace it.")


def _subject(payload: CreateFile | DeleteFile) -> str:
    return f"file:{payload.path}"


@create_file.reconciler(subject=_subject)
def compare_created(payload: CreateFile, result: Any) -> str | None:
    """Return what differs if the file doesn't have the job's content."""
    data = payload.data()
    try:
        with folder_of(_root(), payload.path) as (folder, name):
            found = folder.read(name, len(data) + 1)
    except FileNotFoundError:
        found = None
        _root_is_there()
    except NotAFile as error:
        return f"The file {payload.path} is not what was written. {error}"
    if found is None:
        return f"The file {payload.path} is missing."
    return None if found == data else f"The file {payload.path} has other content."


@delete_file.reconciler(subject=_subject)
def compare_deleted(payload: DeleteFile, result: Any) -> str | None:
    """Return what differs if the deleted name exists again."""
    try:
        with folder_of(_root(), payload.path) as (folder, name):
            return None if folder.mode(name) is None else f"The file {payload.path} exists again."
    except (FileNotFoundError, NotAFile):
        _root_is_there()
        return None
