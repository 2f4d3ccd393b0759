"""Schedules: what the code declares, its synchronisation with the table, and the jobs of due slots."""
