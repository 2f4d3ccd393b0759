"""Typical small background jobs, each of which shows one feature of queues."""
