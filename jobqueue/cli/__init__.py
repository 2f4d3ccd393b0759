"""What ``manage.py jobqueue`` says: one module for each group of subcommands, and what they share."""
