"""What a client of the HTTP API may bring along: the history it keeps, and its parameters."""
