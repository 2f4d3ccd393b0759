"""An app that sets up a tracing library in a worker, as a project does."""
