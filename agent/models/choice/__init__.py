"""Which model answers: the one that settings name, the second one, and the providers that serve them."""
