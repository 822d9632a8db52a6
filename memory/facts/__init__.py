"""Adding a fact: how it relates to known facts, what follows from that, and the history."""
