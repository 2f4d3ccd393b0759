"""The pipeline's commands."""
