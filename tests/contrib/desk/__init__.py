"""An app with commands that can be enqueued."""
