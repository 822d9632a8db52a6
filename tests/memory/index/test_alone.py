"""One PostgreSQL database, and one index of it."""

from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from memory.errors import IndexUnavailable
from memory.index.alone import Alone
from memory.index.embedded.index import EmbeddedIndex
from memory.sql.engine import Database


@pytest.fixture
async def database_url(request: pytest.FixtureRequest) -> AsyncIterator[str]:
    server: Any = request.getfixturevalue("server")
    yield await server.shared()
    await server.empty_shared()


async def test_a_second_index_of_its_own_is_refused_until_the_first_is_closed(
    database: Database, tmp_path: Path
) -> None:
    space = SimpleNamespace(name="one", dimension=4)
    locks = [Alone(database, shared=False) for _ in range(2)]
    first, second = (
        EmbeddedIndex(tmp_path / str(number), space, alone) for number, alone in enumerate(locks)
    )
    await first.refresh()
    await first.refresh()
    for call in (second.refresh, second.count, second.wipe):
        with pytest.raises(IndexUnavailable, match="set QDRANT_URL to the same Qdrant server"):
            await call()
    await first.close()
    await locks[0].close()
    assert await second.count() == 0
    await second.close()
    await locks[1].close()


async def test_processes_that_share_a_server_keep_out_an_index_of_its_own(database: Database) -> None:
    together = [Alone(database, shared=True) for _ in range(2)]
    for alone in together:
        await alone()
    with pytest.raises(IndexUnavailable):
        await Alone(database, shared=False)()
    for alone in together:
        await alone.close()
