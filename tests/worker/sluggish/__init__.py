"""An app in which a supervisor is slow to read what it is asked to take its time for."""
