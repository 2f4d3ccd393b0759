"""An app that starts a thread on import, as monitoring agents do."""
