"""Alerts: when they fire, end and are told, what the channels send, and what races and kills leave."""
