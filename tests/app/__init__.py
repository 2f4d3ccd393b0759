"""An app with jobs for the tests."""
