"""An app whose executors end at their start."""
