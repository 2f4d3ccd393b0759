"""The comparison of this queue with its peers on one machine."""
