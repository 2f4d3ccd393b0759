"""The process that forks executors, before it has a thread or a connection."""
