"""The lists of jobs and of dead letters."""
