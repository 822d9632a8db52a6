"""Consolidate conversations: what is read, what the model is asked, how it answers, and what is written."""
