"""An app with a model and handlers that write to it."""
