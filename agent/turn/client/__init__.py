"""What a client of the HTTP API may send besides the message: its history, tools and parameters."""
