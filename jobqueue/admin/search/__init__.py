"""The search: the query, the filter that it means, and the way to the matching jobs."""
