"""The process that claims and settles: it keeps leases and limits, and runs no handler."""
