"""Erases everything about a person, in the database and outside it."""
