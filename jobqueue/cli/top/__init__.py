"""The live view of ``jobqueue top``: what it shows, and how a terminal draws it."""
