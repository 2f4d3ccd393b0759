"""An app that has a command of the worker's name, as Channels has one."""
