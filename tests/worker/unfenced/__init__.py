"""An app that takes the fence out of every write of a claim's holder, to show what it is good for."""

from __future__ import annotations
