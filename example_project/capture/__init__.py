"""What was said in a conversation: cleaned before it is stored, examined, learnt from, and published for good."""
