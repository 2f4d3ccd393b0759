"""The process that forks executors, forked before any thread or connection exists."""
