"""The pages of alerts."""
