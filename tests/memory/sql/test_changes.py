"""The log of changes, on both databases."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import insert, select

from memory.sql import changes as module
from memory.sql.changes import LEASE, START, Change, ChangeLog, Followed, Position, changed
from memory.sql.engine import Database
from memory.sql.tables import vectors

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


async def write(database: Database, *ids: str, gone: bool = False) -> None:
    async with database.write() as connection:
        await changed(connection, "memory", ids, gone=gone)


async def after(log: ChangeLog, place: Position | str = START, limit: int = 100) -> list[Change]:
    return (await log.after(place, limit))[1]


async def ids_after(log: ChangeLog, place: Position | str = START, limit: int = 100) -> list[str]:
    return [change.id for change in await after(log, place, limit)]


async def passed(log: ChangeLog, position: Position = START) -> list[str]:
    return [change.id for change in await after(log, position) if change.passed]


async def test_changes_are_read_in_their_order_from_any_position(database: Database) -> None:
    log = ChangeLog(database)
    assert (await log.end(), await ids_after(log)) == (START, [])
    for id in "abc":
        await write(database, id)
    await write(database, "d", "e", "d")
    found = await after(log)
    assert [(change.kind, change.id) for change in found] == [("memory", id) for id in "abcde"]
    assert await passed(log) == list("abcde")
    assert await ids_after(log, found[1].position, limit=2) == ["c", "d"]
    assert await log.end() == found[-1].position


async def test_no_earlier_transaction_is_skipped(database: Database, several_connections: None) -> None:
    if database.sqlite:
        pytest.skip("SQLite has one writer")
    log = ChangeLog(database)
    async with database.engine.connect() as slow:
        await changed(slow, "memory", ["slow"])  # has the lower number
        await write(database, "quick")
        assert await ids_after(log) == ["quick"], "a search finds it at once"
        assert await passed(log) == [], "an index that followed it would never see the other"
        assert await log.end() == START
        await slow.commit()
    assert await passed(log) == ["slow", "quick"]
    begun = await log.end()
    async with database.engine.connect() as early, database.engine.connect() as late:
        await changed(early, "memory", ["one"])
        await changed(late, "memory", ["two"])
        await changed(early, "memory", ["three"])  # a later number of an earlier transaction
        await early.commit()
        followed = [change for change in await after(log, begun) if change.passed]
        assert [change.id for change in followed] == ["one", "three"]
        await late.commit()
    assert await passed(log, followed[-1].position) == ["two"]


async def test_an_index_outside_the_log_is_told(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "KEPT", 3)
    log = ChangeLog(database)
    assert await log.leads_on_from(START)
    for id in "abcde":
        await write(database, id)
    *_, third, fourth, last = [change.position for change in await after(log)]
    assert await log.leads_on_from(START)
    await log.cut()
    await log.cut()
    assert await log.after(START, 9) == (None, []), "something before was cut"
    assert await ids_after(log, third) == ["d", "e"]
    assert not await log.leads_on_from(START)
    assert await log.leads_on_from(fourth)
    assert await log.leads_on_from(last)
    assert not await log.leads_on_from(Position(last.tx, last.seq + 1)), "of a newer database"


async def test_the_vectors_of_what_is_gone_go_in_the_same_transaction(database: Database) -> None:
    ids = [str(uuid4()) for _ in range(3)]
    row: dict[str, Any] = {"lane": "dense", "embedder": "one", "digest": b"", "vector": b""}
    async with database.write() as connection:
        await connection.execute(insert(vectors), [row | {"id": id} for id in ids])
    await write(database, ids[0])
    await write(database, ids[1], gone=True)
    left = {found.id for found in await database.rows(select(vectors.c.id))}
    assert left == {ids[0], ids[2]}


async def test_whoever_holds_the_lease_advances(database: Database) -> None:
    one, other, log = Followed(database, "one"), Followed(database, "other"), ChangeLog(database)
    assert await log.after("here", 9) == (None, [])
    assert await one.position("here") is None
    assert await one.lease("here", NOW)
    assert not await other.lease("here", NOW + LEASE)
    assert not await other.advance("here", None, Position(1, 2))
    assert await one.advance("here", None, Position(1, 2))
    assert not await one.advance("here", None, Position(1, 3)), "it is at another place"
    assert await other.position("here") == Position(1, 2)
    assert await log.after("here", 9) == (Position(1, 2), [])
    await write(database, "later")
    assert await log.after("here", 9) == await log.after(Position(1, 2), 9)
    assert await other.lease("here", NOW + LEASE + timedelta(seconds=1))
    assert not await one.renew("here", NOW)
    assert not await one.advance("here", Position(1, 2), Position(1, 3))
    await other.release("here")
    assert await one.lease("here", NOW)
    await one.forget("here")
    assert await other.position("here") is None
    assert not await one.renew("here", NOW), "what it has put is gone too"
    assert not await one.advance("here", None, Position(1, 3))
