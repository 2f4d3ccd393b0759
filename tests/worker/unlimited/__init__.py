"""An app that takes Python's limits away as it comes up, as libraries for cryptography do."""
