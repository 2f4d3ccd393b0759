"""Which jobs of a lane may start: values in, a decision out."""

from __future__ import annotations

#: The name of the lane of jobs without a value for the key, and of the only lane of a queue that has no key.
WHOLE_QUEUE = "*"
