"""The command line: what the subcommands of ``manage.py jobqueue`` and ``runworker`` share."""
