"""The process that claims and settles jobs. It renews leases and watches time limits, and runs no handler."""
