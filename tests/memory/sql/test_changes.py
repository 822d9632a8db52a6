"""What the triggers write: the log of changes, tags and evidence; and what goes with a row."""

from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import Table, insert, select

from memory.sql import changes as module
from memory.sql import tables as t
from memory.sql.engine import Database

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
ANNA, BEN, PLACE, OF_DOCUMENTS = "user:anna", "user:ben", "place:acme", "documents of global"
KEPT_BY_ANNA = {"memory_id": "fact", "owner": ANNA, "content_key": "k"}
HIDING = {"row_id": "said", "kind": "message", "forgetting_id": "once"}
SAID: dict[str, Any] = {"conversation_id": "c", "user_id": "anna", "place": "", "role": "user"}
SAID |= {"author": "Anna", "text": "yes", "sent_at": NOW}
IN_PLACE = SAID | {"place": PLACE}
NEWER = "n" * 36
REPLACED = {"old_id": "fact", "new_id": NEWER, "owner": ANNA, "lasts": "always", "at": NOW, "reason": ""}
LINK_HIDDEN = HIDING | {"kind": "link", "row_id": f"{NEWER} {ANNA}"}
AROUND = f"around {PLACE}"


def of(id: str, *owners: str) -> set[tuple[str, str]]:
    return {(owner, id) for owner in owners}


STEPS: list[tuple[Any, set[tuple[str, str]]]] = [
    (t.memory_owners.insert().values(KEPT_BY_ANNA), of("fact", ANNA)),
    (t.replacements.insert().values(REPLACED), of("fact", ANNA)),
    (t.hidden.insert().values(LINK_HIDDEN), of("fact", ANNA) | of(NEWER, ANNA)),
    (t.hidden.delete(), of("fact", ANNA) | of(NEWER, ANNA)),
    (t.replacements.delete(), of("fact", ANNA)),
    (t.memories.update().values(expires_at=NOW), of("fact", ANNA)),
    (t.memories.update().values(uses=1, last_accessed_at=NOW), set()),
    (t.memories.delete(), of("fact", ANNA)),
    (t.messages.insert().values(IN_PLACE | {"id": "said"}), of("said", ANNA, PLACE)),
    (t.messages.insert().values(IN_PLACE | {"id": "b", "user_id": "ben"}), of("b", ANNA, BEN, PLACE)),
    (t.messages.insert().values(IN_PLACE | {"id": "re", "role": "assistant"}), of("re", ANNA, BEN, PLACE)),
    (t.messages.insert().values(SAID | {"id": "private"}), of("private", ANNA)),
    (t.messages.update().values(client_items=None), set()),
    (t.hidden.insert().values(HIDING), of("said", ANNA, PLACE, AROUND)),
    (t.hidden.insert().values(HIDING | {"kind": "told"}), of("said", ANNA, PLACE, AROUND)),
    (t.hidden.insert().values(HIDING | {"kind": "told", "row_id": "of a profile"}), set()),
    (t.messages.delete().where(t.messages.c.id == "said"), of("said", ANNA, PLACE)),
    (t.messages.delete().where(t.messages.c.id == "b"), of("b", BEN, PLACE, AROUND)),
    (t.active_conversations.update().values(summary="anew", revision=1), of("talk", "o")),
    (t.active_conversations.update().values(covered=2, revision=1), set()),
    (t.active_conversations.delete(), of("talk", "o")),
    (t.knowledge_documents.delete(), of("page", OF_DOCUMENTS)),
]
"""Statements, and which rows of whom each of them tells to read again."""


async def test_rows_bring_their_tags_and_evidence_write_the_log_and_take_their_vectors_with_them(
    database: Database,
) -> None:
    fact = {"content": "x", "subjects": ["cats", "זוהר"], "source": "api", "type": "fact", "place": "dm"}
    fact |= {"importance": 1.0, "id": "fact", "created_at": NOW, "user_id": "anna", "message_id": "said"}
    file = {"owner": "global", "path": "a.md", "title": "a", "digest": "d", "added_at": NOW, "id": "file"}
    page = {"id": "page", "document_id": "file", "chunk_index": 0, "heading": "", "text": "x"}
    rows: list[tuple[Table, dict[str, Any]]] = [
        (t.memories, fact),
        (t.active_conversations, {"id": "talk", "conversation_id": "c", "owner": "o", "updated_at": NOW}),
        (t.knowledge_documents, file),
        (t.knowledge_chunks, page),
        (t.forgettings, {"id": "once", "person": "anna", "at": NOW, "why": "forgotten"}),
    ]
    vector: dict[str, Any] = {"lane": "dense", "embedder": "one", "digest": b"", "vector": b""}
    rows += [(t.vectors, vector | {"id": id}) for id in ("fact", "said", "talk", "page", "left")]
    async with database.write() as connection:
        for table, row in rows:
            await connection.execute(insert(table).values(row))
    tagged = {tuple(row) for row in await database.rows(select(t.memory_tags))}
    assert tagged == {("cats", "fact"), ("זוהר", "fact")}
    assert await database.rows(select(t.rests_on)) == [("fact", "said", "stated")]
    logged = select(t.changes.c.owner, t.changes.c.id)
    assert {tuple(row) for row in await database.rows(logged)} == of("page", OF_DOCUMENTS) | of("talk", "o")
    for statement, expected in STEPS:
        [last] = await database.rows(select(t.changes.c.seq).order_by(t.changes.c.seq.desc()).limit(1))
        await database.run(statement)
        found = await database.rows(logged.where(t.changes.c.seq > last.seq))
        assert {tuple(row) for row in found} == expected, str(statement)
    assert [row.id for row in await database.rows(select(t.vectors.c.id))] == ["left"]


async def test_cutting_leaves_the_newest(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LATEST", 3)
    for number in range(5):
        await database.run(t.messages.insert().values(SAID | {"id": str(number)}))
    await module.cut(database)
    left = await module.read(database, [ANNA], "0" if database.sqlite else "3:3:")
    assert [change.id for change in left.changes] == ["2", "3", "4"]
    assert left.last - left.first == 2
