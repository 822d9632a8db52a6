"""Every column of the database is declared as personal data, or here as free of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from memory.erasure.person.personal_data import COLUMNS, rows_containing, rows_naming
from memory.sql.tables import metadata

if TYPE_CHECKING:
    from tests.memory.conftest import Stack

on_both = pytest.mark.parametrize("on_database", ["sqlite", "postgresql"], indirect=True)

FREE_OF_PERSONAL_DATA = {
    "users": "created_at import_key",
    "conversations": "created_at place",
    "messages": "ended forgotten_at id indexed_under outdated_at place replaced_at role sent_at seq sources",
    "active_conversations": "covered forgotten_at id indexed_under mode revision unsourced updated_at"
    " withheld",
    "message_origins": "message_id origin",
    "context_entries": "field message_id place said_at",
    "derived_sources": "source_id text_id",
    "memories": (
        "created_at expires_at id importance indexed_under last_accessed_at message_id place revision "
        "source type uses"
    ),
    "memory_owners": "content_key memory_id superseded_at superseded_by",
    "memory_aliases": "memory_id",
    "memory_tags": "memory_id",
    "memory_sources": "memory_id message_id",
    "session_memories": "memory_id",
    "forgotten": "forgotten_at id until",
    "memory_updates": "created_at id new_id old_id",
    "tasks": "created_at due id last_updated place reminded status",
    "knowledge_documents": "added_at digest id",
    "knowledge_chunks": "chunk_index document_id id indexed_under",
    "api_keys": "admin created_at digest id kind last_used_at revoked_at",
    "deliveries": "id seen_at source",
    "places": "changed_at listening place",
    "erasures": "begun_at places removed",
    "erasure_items": "id kind",
    "figures": "name value",
    "traces": (
        "cached_tokens calls id input_tokens kind message_id model output_tokens place process seq "
        "started_at status surface took tools turn_id written_at"
    ),
    "trace_bodies": "body trace_id",
    "work": "attempts claimed_by crashes created_at due_at id kind seq",
}
PERSONAL = {"user_id", "owner", "owners", "author", "changed_by", "text", "content", "summary", "payload"}
"""Names of columns that must not be declared free."""


def test_every_column_is_declared_once() -> None:
    for name, table in metadata.tables.items():
        free = FREE_OF_PERSONAL_DATA.get(name, "").split()
        personal = (*COLUMNS[name].names, *COLUMNS[name].texts) if name in COLUMNS else ()
        assert sorted([*personal, *free]) == sorted(column.name for column in table.columns), name
        assert not PERSONAL & set(free), name
    assert COLUMNS.keys() | FREE_OF_PERSONAL_DATA.keys() == metadata.tables.keys()


@on_both
async def test_rows_that_name_or_quote_a_person_are_found(stack: Stack) -> None:
    await stack.remember('Anna said "où?"', "anna", "acme")
    await stack.receive("I like tea", "anna")
    async with stack.database.read() as connection:
        naming = await rows_naming(connection, "anna")
        assert await rows_naming(connection, "ann") == {}
        containing = await rows_containing(connection, ['Anna said "où?"', "like tea"])
        assert await rows_containing(connection, ["like coffee"]) == {}
    tables = ("users", "conversations", "messages", "speakers", "memories", "memory_owners")
    assert naming == dict.fromkeys(tables, 1)
    assert containing == {"messages": 1, "memories": 1}
