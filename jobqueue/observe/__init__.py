"""Telling what happened, to those who run the application."""
