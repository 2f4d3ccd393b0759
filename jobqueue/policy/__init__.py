"""Pure decisions: values in, a decision out. No Django, no I/O, no clock."""
