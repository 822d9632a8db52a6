"""Adding a fact: what it is to the facts that are known, what follows, and the history of it."""
