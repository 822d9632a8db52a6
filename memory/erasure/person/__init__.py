"""Erasing a person: everything of theirs goes, for good, and a receipt says what was verified."""
