"""Chores of the kind that every system has: each small, each with one thing about queues to show."""
