"""Template tags for the admin."""
