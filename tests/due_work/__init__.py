"""due-work-harness, a kit of proofs for background work, run against this queue."""
