"""What an operator does to jobs: the question first, then the verb."""
