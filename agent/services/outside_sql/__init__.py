"""Erases a person outside the database: in traces, in lines of files, and in caches of this process."""
