"""A small Django project with a queue in it."""
