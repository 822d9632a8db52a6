"""Recall facts and messages: search, ranking, and the explanation of both."""
