"""One PostgreSQL database, and one index of it."""

from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from memory.errors import IndexUnavailable, StoreUnavailable
from memory.index.alone import Alone
from memory.index.embedded.index import EmbeddedIndex
from memory.sql.engine import Database

OTHERS_END = "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = 'shared'"


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


async def test_a_lock_whose_connection_is_lost_is_taken_again(database: Database, server: Any) -> None:
    alone = Alone(database, shared=True)
    await alone()
    await server.run(OTHERS_END)
    await alone()
    with pytest.raises(IndexUnavailable):
        await Alone(database, shared=False)()
    await alone.close()


async def test_a_lock_that_cannot_be_asked_for_fails_no_write(
    database: Database,
    server: Any,
    build_stack: Any,
    bundled: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    alone = Alone(database, shared=False)
    stack = await build_stack(database, bundled, EmbeddedIndex(tmp_path / "own", bundled, alone))
    await alone()

    async def refused() -> None:
        raise StoreUnavailable("the server takes no more connections")

    monkeypatch.setattr(database, "connect_alone", refused)
    await server.run(OTHERS_END)
    assert (await stack.remember("Ana likes tea")).action == "add"
    assert await stack.found("tea") == {"Ana likes tea"}
    monkeypatch.undo()
    assert await stack.indexing.catch_up() == 1
    await stack.index.close()
    await alone.close()


async def test_the_lock_takes_no_connection_from_others(database: Database) -> None:
    alone = Alone(database, shared=True)
    await alone()
    assert database.engine.pool.checkedout() == 0  # type: ignore[attr-defined]
    await alone.close()


async def test_processes_that_share_a_server_keep_out_an_index_of_its_own(database: Database) -> None:
    together = [Alone(database, shared=True) for _ in range(2)]
    for alone in together:
        await alone()
    with pytest.raises(IndexUnavailable):
        await Alone(database, shared=False)()
    for alone in together:
        await alone.close()
