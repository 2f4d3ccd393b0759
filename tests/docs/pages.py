"""The pages of the documentation, and what tests read from them."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
#: These have links too, and code.
FRONT = [ROOT / one for one in ("README.md", "CHANGELOG.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md")]

_BLOCK = re.compile(r"^```(\{?[\w-]*\}?)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def name(page: Path) -> str:
    """Name a page as a reader would."""
    return str(page.relative_to(ROOT))


def text(page: str) -> str:
    """Read a page of the documentation."""
    return (DOCS / page).read_text(encoding="utf-8")


def blocks(page: Path) -> list[tuple[str, str]]:
    """List the kind and the text of each block of code."""
    return _BLOCK.findall(page.read_text(encoding="utf-8"))


def prose(page: Path) -> str:
    """Read a page without its blocks of code."""
    return _BLOCK.sub("", page.read_text(encoding="utf-8"))
