"""Incidents, each staged for real: the dashboard and ``jobqueue status`` name it, and stop when it is over."""
