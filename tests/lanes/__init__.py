"""Tests of lanes: random histories, late commits across processes, and what the code of queues says."""
