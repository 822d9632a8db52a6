"""Deleting for good: expiry, clean-up, forgetting one fact, and erasing a person."""
