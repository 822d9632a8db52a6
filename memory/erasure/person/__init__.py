"""Erasing a person: everything of theirs goes, for good, and a receipt counts what went and what stays."""
