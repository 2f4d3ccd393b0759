"""The subcommands of ``manage.py jobqueue``."""
