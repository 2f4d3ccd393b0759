"""The capture of conversations: sanitised before they are stored, checked, learnt from, and published."""
