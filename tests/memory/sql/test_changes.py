"""The log of changes, on both databases."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import Table, insert, select, text, update
from sqlalchemy.dialects import sqlite

from memory.sql import changes as module
from memory.sql import tables as t
from memory.sql.changes import START, Change, ChangeLog, Followed, Position, windows_changed
from memory.sql.engine import Database

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


async def write(database: Database, *ids: str) -> None:
    async with database.write() as connection:
        await windows_changed(connection, ids)


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
    await write(database, "d", "e")
    found = await after(log)
    assert [(change.kind, change.id) for change in found] == [("message", id) for id in "abcde"]
    assert await passed(log) == list("abcde")
    assert await ids_after(log, found[1].position, limit=2) == ["c", "d"]
    assert await log.end() == found[-1].position


async def test_no_earlier_transaction_is_skipped(database: Database, several_connections: None) -> None:
    if database.sqlite:
        pytest.skip("SQLite has one writer")
    log = ChangeLog(database)
    async with database.engine.connect() as slow:
        await windows_changed(slow, ["slow"])  # has the lower number
        await write(database, "quick")
        assert await ids_after(log) == ["quick"], "a search finds it at once"
        assert await passed(log) == [], "an index that followed it would never see the other"
        assert await log.end() == START
        await slow.commit()
    assert await passed(log) == ["slow", "quick"]
    begun = await log.end()
    async with database.engine.connect() as early, database.engine.connect() as late:
        await windows_changed(early, ["one"])
        await windows_changed(late, ["two"])
        await windows_changed(early, ["three"])  # a later number of an earlier transaction
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


async def test_a_place_in_a_long_log_is_looked_up(database: Database) -> None:
    """A search and each new fact ask for what comes after one: a scan of the log grew with it."""
    if not database.sqlite:
        pytest.skip("PostgreSQL chooses a plan by the rows that there are")
    for noted in (False, True):
        query = module._AFTER[True, noted].compile(dialect=sqlite.dialect(paramstyle="named"))
        async with database.read() as connection:
            given = dict.fromkeys(query.params, 1)
            plan = await connection.execute(text(f"EXPLAIN QUERY PLAN {query}"), given)
            assert any("(tx=? AND seq>?)" in step.detail for step in plan)


KEPT_BY_ANNA = {"memory_id": "fact", "owner": "user:anna", "content_key": "k"}
HIDING = {"row_id": "said", "kind": "message", "forgetting_id": "once"}
SAID: dict[str, Any] = {"id": "said", "conversation_id": "c", "user_id": "anna", "place": "", "role": "user"}
SAID |= {"author": "Anna", "text": "yes", "sent_at": NOW}
GAVE_WAY = t.memory_owners.update().values(superseded_by="other")
STEPS: list[tuple[Any, list[tuple[str, str]]]] = [
    (t.memory_owners.insert().values(KEPT_BY_ANNA), [("memory", "fact")]),
    (GAVE_WAY, [("memory", "fact")]),
    (GAVE_WAY, []),
    (t.memory_owners.update().values(superseded_by=None), [("memory", "fact")]),
    (t.memories.update().values(expires_at=NOW), [("memory", "fact")]),
    (t.memories.update().values(uses=1, last_accessed_at=NOW), []),
    (t.memories.delete(), [("memory", "fact")]),
    (t.messages.insert().values(SAID), [("message", "said")]),
    (t.messages.update().values(client_items=None), []),
    (t.hidden.insert().values(HIDING), [("message", "said")]),
    (t.hidden.insert().values(HIDING | {"kind": "told"}), [("message", "said")]),
    (t.hidden.insert().values(HIDING | {"kind": "told", "row_id": "of a profile"}), []),
    (t.forgettings.delete(), [("message", "said")] * 2),
    (t.messages.delete(), [("message", "said")]),
    (t.active_conversations.update().values(summary="anew", revision=1), [("summary", "talk")]),
    (t.active_conversations.update().values(covered=2, revision=1), []),
    (t.active_conversations.delete(), [("summary", "talk")]),
    (t.knowledge_documents.delete(), [("chunk", "page")]),
]
"""Statements, and what each of them writes in the log."""


async def test_rows_bring_their_tags_and_evidence_write_the_log_and_take_their_vectors_with_them(
    database: Database,
) -> None:
    fact = {
        "content": "x",
        "subjects": ["cats", "זוהר"],
        "source": "api",
        "type": "fact",
        "importance": 1.0,
        "place": "dm",
    }
    file = {"owner": "global", "path": "a.md", "title": "a", "digest": "d", "added_at": NOW}
    rows: list[tuple[Table, dict[str, Any]]] = [
        (t.memories, fact | {"id": "fact", "created_at": NOW, "user_id": "anna", "message_id": "said"}),
        (t.active_conversations, {"id": "talk", "conversation_id": "c", "owner": "o", "updated_at": NOW}),
        (t.knowledge_documents, file | {"id": "file"}),
        (
            t.knowledge_chunks,
            {"id": "page", "document_id": "file", "chunk_index": 0, "heading": "", "text": "x"},
        ),
        (t.forgettings, {"id": "once", "person": "anna", "at": NOW, "why": "forgotten"}),
    ]
    vector: dict[str, Any] = {"lane": "dense", "embedder": "one", "digest": b"", "vector": b""}
    rows += [(t.vectors, vector | {"id": id}) for id in ("fact", "said", "talk", "page", "left")]
    async with database.write() as connection:
        for table, row in rows:
            await connection.execute(insert(table).values(row))
    assert {tuple(row) for row in await database.rows(select(t.memory_tags))} == {
        ("cats", "fact"),
        ("זוהר", "fact"),
    }
    assert await database.rows(select(t.rests_on)) == [("fact", "said", "stated")]
    log = ChangeLog(database)
    assert [(change.kind, change.id) for change in await after(log)] == [("chunk", "page")]
    for statement, logged in STEPS:
        end = await log.end()
        await database.run(statement)
        assert [(change.kind, change.id) for change in await after(log, end)] == logged, str(statement)
    assert [row.id for row in await database.rows(select(t.vectors.c.id))] == ["left"]


async def test_whoever_holds_the_lease_advances(database: Database) -> None:
    one, other, log = Followed(database, "one"), Followed(database, "other"), ChangeLog(database)
    assert await log.after("here", 9) == (None, [])
    assert await one.position("here") is None
    assert await one.lease("here")
    assert not await other.lease("here")
    assert not await other.advance("here", None, Position(1, 2))
    assert await one.advance("here", None, Position(1, 2))
    assert not await one.advance("here", None, Position(1, 3)), "it is at another place"
    assert await other.position("here") == Position(1, 2)
    assert await log.after("here", 9) == (Position(1, 2), [])
    await write(database, "later")
    assert await log.after("here", 9) == await log.after(Position(1, 2), 9)
    assert not await other.lease("here")
    await database.run(update(t.index_positions).values(until=NOW - timedelta(days=9999)))  # it has ended
    assert await other.lease("here")
    assert not await one.renew("here")
    assert not await one.advance("here", Position(1, 2), Position(1, 3))
    await other.release("here")
    assert await one.lease("here")
    await one.forget("here")
    assert await other.position("here") is None
    assert not await one.renew("here"), "what it has put is gone too"
    assert not await one.advance("here", None, Position(1, 3))
