"""A real Prometheus, which scrapes some ports and is asked for what it has stored."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from urllib.request import urlopen

from benchmarks.workers import until

#: How often it scrapes, in seconds.
INTERVAL = 1.0


class Prometheus:
    """The server's query interface."""

    def __init__(self, address: str) -> None:
        self._address = address

    def answers(self) -> bool:
        """Return whether the server is ready."""
        try:
            with urlopen(f"{self._address}/-/ready", timeout=2):  # noqa: S310
                return True
        except OSError:
            return False

    def ask(self, path: str, **query: Any) -> Any:
        """Return the data of an answer."""
        with urlopen(f"{self._address}/api/v1/{path}?{urlencode(query)}", timeout=30) as answer:  # noqa: S310
            found = json.load(answer)
        if found["status"] != "success":
            raise RuntimeError(f"Prometheus refused {query}: {found}")
        return found["data"]

    def samples(self, series: str, seconds: float) -> list[tuple[dict[str, str], list[tuple[float, float]]]]:
        """Return the stored samples of some series, as they were scraped: labels, then times and values."""
        found = self.ask("query", query=f"{series}[{int(seconds) + 1}s]")["result"]
        return [(one["metric"], [(at, float(value)) for at, value in one["values"]]) for one in found]


@contextmanager
def prometheus(folder: Path, ports: Sequence[int], token: str, rules: Path) -> Iterator[Prometheus]:
    """Start a server that scrapes these ports, and stop it."""
    program = shutil.which("prometheus")
    if not program:
        raise SystemExit("Prometheus is not installed. Debian and Ubuntu have it as the package prometheus.")
    config = {
        "global": {
            "scrape_interval": f"{INTERVAL:g}s",
            "scrape_timeout": f"{INTERVAL:g}s",
            "evaluation_interval": "5s",
        },
        "rule_files": [str(rules)],
        "scrape_configs": [
            {
                "job_name": "jobqueue",
                "metrics_path": "/metrics/",
                "authorization": {"credentials": token},
                "static_configs": [{"targets": [f"127.0.0.1:{port}" for port in ports]}],
            }
        ],
    }
    (folder / "prometheus.yml").write_text(json.dumps(config), encoding="utf-8")
    with socket.create_server(("127.0.0.1", 0)) as free:
        own = free.getsockname()[1]
    command = [program, f"--config.file={folder / 'prometheus.yml'}", f"--storage.tsdb.path={folder / 'data'}"]
    command += [f"--web.listen-address=127.0.0.1:{own}", "--log.level=error"]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL) as process:
        try:
            server = Prometheus(f"http://127.0.0.1:{own}")
            until(server.answers, "Prometheus is ready")
            yield server
        finally:
            process.terminate()
