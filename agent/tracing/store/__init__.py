"""Stores traces in SQL."""
