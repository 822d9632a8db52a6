"""Adding a fact: comparing it with known facts, deciding what to do, and recording the history."""
