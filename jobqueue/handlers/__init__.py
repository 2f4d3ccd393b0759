"""The code side of a job: what its payload looks like, how it is treated, and where its function is found."""
