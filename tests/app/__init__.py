"""An app whose jobs the tests enqueue."""
