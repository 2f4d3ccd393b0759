"""Job types: their functions, options, payloads and results, and the context of a handler."""
