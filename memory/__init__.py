"""Hachi's long-term memory: records, the database, the index, and the storage and search of facts."""
