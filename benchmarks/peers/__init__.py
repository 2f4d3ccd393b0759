"""The comparison: this queue and its peers, side by side on one machine."""
