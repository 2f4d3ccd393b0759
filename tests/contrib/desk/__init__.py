"""An app with commands that are worth enqueueing."""
