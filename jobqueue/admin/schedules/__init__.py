"""The pages of schedules."""
