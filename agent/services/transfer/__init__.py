"""Takes data out and brings it back: exports and imports, backups, and moves to another database."""
