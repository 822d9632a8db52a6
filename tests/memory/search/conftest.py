"""These tests run on SQLite alone unless they say otherwise: `on_database` in tests/memory/conftest.py."""

import pytest


@pytest.fixture
def on_database(request: pytest.FixtureRequest) -> str:
    return str(getattr(request, "param", "sqlite"))
