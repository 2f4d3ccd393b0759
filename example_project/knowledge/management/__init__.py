"""The tool's commands."""
