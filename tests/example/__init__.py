"""The example project, as a newcomer runs it: its own settings, a web server, a worker."""
