"""Add a fact: compare it with stored facts, decide what to do, and record the history."""
