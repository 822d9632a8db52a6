"""Language models: choose one, call it, and have it rule on facts."""
