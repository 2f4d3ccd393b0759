"""How these pages are built: `sphinx-build -n -W --keep-going docs build/docs`, with the extra `docs` installed."""

from __future__ import annotations

import tomllib
from pathlib import Path

_PROJECT = tomllib.loads((Path(__file__).resolve().parents[1] / "pyproject.toml").read_text(encoding="utf-8"))[
    "project"
]

project = "jobqueue"
author = _PROJECT["authors"][0]["name"]
release = version = _PROJECT["version"]

extensions = ["myst_parser"]
myst_heading_anchors = 4  # so that a link may name any heading, as it may where the repository is browsed
nitpicky = True

html_theme = "furo"
html_title = f"jobqueue {release}"
html_copy_source = False
html_show_copyright = False
html_show_sphinx = False
