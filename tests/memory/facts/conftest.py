"""The rules of facts are proven on SQLite. The random stories, what happens at the same time and the main
paths run on PostgreSQL too: they run each statement that facts make."""

import pytest


@pytest.fixture
def on_database(request: pytest.FixtureRequest) -> str:
    return str(getattr(request, "param", "sqlite"))
