"""One adapter for each queue, run in the queue's own environment: of all else it needs the standard library only."""
