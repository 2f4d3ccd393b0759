"""An app whose executors end as they begin."""
