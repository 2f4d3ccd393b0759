"""The search box: what is typed, which jobs it means, and how they are found."""
