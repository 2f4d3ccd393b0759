"""The worker: a supervisor that claims and settles, a zygote that forks, executors that run handlers."""
