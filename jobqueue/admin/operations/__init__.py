"""The pages of queues and of workers."""
