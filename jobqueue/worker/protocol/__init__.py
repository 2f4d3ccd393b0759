"""What passes between the supervisor and its executors."""
