"""The rules of erasure are proven on SQLite. The random stories, what happens at the same time and the main
paths run on PostgreSQL too: together they run each statement that an erasure or a forgetting makes."""

import pytest


@pytest.fixture
def on_database(request: pytest.FixtureRequest) -> str:
    return str(getattr(request, "param", "sqlite"))
