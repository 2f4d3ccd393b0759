"""An app that lifts Python's limits on import, as libraries for cryptography do."""
