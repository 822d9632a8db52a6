"""What the model sees: gathered, cut to its budgets, and written as messages."""
