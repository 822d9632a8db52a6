"""Exports and imports, backups, and moves to another database."""
