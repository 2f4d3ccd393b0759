"""The messages between a supervisor and its executors."""
