"""An app that starts a thread as it comes up, as agents that watch a process do."""
