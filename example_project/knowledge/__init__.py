"""A command-line tool that collects knowledge. Hooks call its commands, and the queue runs them one after another."""
