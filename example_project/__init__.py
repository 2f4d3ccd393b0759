"""A small Django project with a queue."""
