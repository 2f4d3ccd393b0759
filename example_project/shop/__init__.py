"""A shop that sends receipts and makes thumbnails."""
