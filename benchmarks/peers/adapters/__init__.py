"""The adapters, one for each queue. They run in the queue's environment and need only the standard library."""
