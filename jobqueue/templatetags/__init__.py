"""What the admin's own templates need of the job queue."""
