"""These tests run on SQLite alone: see `database_url` in tests/memory/conftest.py."""

import pytest


@pytest.fixture
def database_url(sqlite_url: str) -> str:
    return sqlite_url
