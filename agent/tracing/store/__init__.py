"""Stores traces in SQL: `traces` writes and reads them, `removal` prunes, erases and empties them."""
