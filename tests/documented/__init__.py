"""A small project, tested in processes of its own as the documentation says."""
