"""An app that removes the fence from every write of a claim's holder, to show what it is for."""

from __future__ import annotations
