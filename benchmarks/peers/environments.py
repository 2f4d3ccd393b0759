"""The peers' environments, made once from pinned requirements and kept for the next run."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.peers.catalogue import Peer

_PATIENCE = 900


class NotInstalled(Exception):
    """A peer could not be installed; the message says why."""


def default_folder() -> Path:
    """Say where environments are kept unless told otherwise."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "jobqueue-bench"


def interpreter(peer: Peer, folder: Path) -> str:
    """Find the peer's interpreter, and make its environment if there is none yet."""
    if not peer.requirements:
        return sys.executable
    key = hashlib.sha256("\n".join([sys.version, *peer.requirements]).encode()).hexdigest()[:12]
    environment = folder / f"{peer.name}-{key}"
    if not environment.exists():
        print(f"Installing {', '.join(peer.requirements)} into {environment}", file=sys.stderr, flush=True)
        _make(environment, peer)
    return str(environment / "bin" / "python")


def _make(environment: Path, peer: Peer) -> None:
    """Make it where it will stay, for it knows its path; mark it as begun until it is whole."""
    environment.parent.mkdir(parents=True, exist_ok=True)
    try:
        _run(sys.executable, "-m", "venv", str(environment))
        _run(str(environment / "bin" / "python"), "-m", "pip", "install", "--quiet", *peer.requirements)
    except BaseException:
        shutil.rmtree(environment, ignore_errors=True)
        raise


def _run(*command: str) -> None:
    with tempfile.TemporaryFile("w+", encoding="utf-8") as said:
        try:
            status = subprocess.run(command, stdout=said, stderr=said, timeout=_PATIENCE, check=False).returncode
        except (OSError, subprocess.TimeoutExpired) as error:
            raise NotInstalled(str(error)) from error
        said.seek(0)
        lines = [line.strip() for line in said if line.strip()]
    if status:
        blamed = [line for line in lines if line.startswith("ERROR")] or lines or [f"pip ended with {status}"]
        raise NotInstalled(blamed[-1])
