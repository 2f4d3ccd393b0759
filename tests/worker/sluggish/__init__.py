"""An app whose supervisor is slow to read certain messages."""
