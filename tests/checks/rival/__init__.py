"""An app with a command named ``runworker``, like Channels."""
