"""Tests of the example project with its own settings, a web server and a worker."""
