"""Answers to an operator's questions about many jobs, each at a cost that doesn't depend on the number of jobs."""
