"""Where in the record a person's data can be: every column of every table, declared.

An erasure verifies itself by what is declared here, and a test holds it to the tables, so that a column that
is added later cannot be forgotten.
"""

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from sqlalchemy import ColumnElement, String, cast, func, or_, select
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.audience import user_key
from memory.sql.tables import metadata

LONGEST_SOUGHT = 200
"""Characters of a text that are looked for: enough to know it by."""


@dataclass(frozen=True, slots=True)
class Columns:
    """What the columns of a table hold. Each stands in one of these."""

    names: tuple[str, ...] = ()
    """A person's id, the key of an owner (``user:U``), or the name of a conversation."""
    texts: tuple[str, ...] = ()
    """What somebody said, or was said of them."""
    plain: tuple[str, ...] = ()
    """Nothing of a person: ids that mean nothing outside, times, counts, places, the state of the index."""


COLUMNS: Mapping[str, Columns] = {
    "users": Columns(names=("id",), plain=("created_at",)),
    "conversations": Columns(names=("id", "user_id"), plain=("place", "created_at")),
    "messages": Columns(
        names=("conversation_id", "user_id"),
        texts=("author", "text"),
        plain=("seq", "id", "place", "role", "sent_at", "indexed_under"),
    ),
    "speakers": Columns(names=("owner",), texts=("author",)),
    "active_conversations": Columns(
        names=("conversation_id", "owner"),
        texts=("summary",),
        plain=("id", "mode", "covered", "updated_at", "indexed_under", "revision"),
    ),
    "context_entries": Columns(
        names=("user_id",), texts=("item", "value"), plain=("place", "field", "said_at")
    ),
    "memories": Columns(
        names=("user_id",),
        texts=("content", "subjects"),
        plain=(
            *("id", "created_at", "expires_at", "source", "type", "importance", "last_accessed_at", "uses"),
            *("place", "message_id", "indexed_under", "revision"),
        ),
    ),
    "memory_owners": Columns(names=("owner",), plain=("memory_id", "content_key", "superseded")),
    "memory_aliases": Columns(names=("owner",), texts=("name", "other"), plain=("memory_id",)),
    "memory_updates": Columns(
        names=("user_id", "owners"), texts=("reason",), plain=("id", "old_id", "new_id", "created_at")
    ),
    "tasks": Columns(
        names=("user_id",),
        texts=("description",),
        plain=("id", "place", "status", "due", "created_at", "last_updated", "reminded"),
    ),
    "knowledge_documents": Columns(
        names=("owner",), texts=("path", "title"), plain=("id", "digest", "added_at")
    ),
    "knowledge_chunks": Columns(
        texts=("heading", "text"), plain=("id", "document_id", "chunk_index", "indexed_under")
    ),
    "api_keys": Columns(
        names=("user_id",),
        texts=("name",),
        plain=("id", "kind", "admin", "digest", "created_at", "last_used_at", "revoked_at"),
    ),
    "deliveries": Columns(plain=("source", "id", "seen_at")),
    "places": Columns(names=("changed_by",), plain=("place", "listening", "changed_at")),
    "traces": Columns(
        names=("user_id", "conversation_id"),
        texts=("said", "reply", "error"),
        plain=(
            *(
                "seq",
                "id",
                "kind",
                "turn_id",
                "status",
                "started_at",
                "written_at",
                "took",
                "place",
                "surface",
            ),
            *("model", "process", "calls", "tools", "input_tokens", "output_tokens", "cached_tokens"),
            "message_id",
        ),
    ),
    "trace_bodies": Columns(plain=("trace_id", "body")),  # deflated; goes with its trace
    "work": Columns(
        names=("user_id", "about"),
        texts=("payload", "last_error"),
        plain=("seq", "id", "kind", "attempts", "due_at", "created_at"),
    ),
}


PEOPLES = ("messages", "memories", "context_entries", "tasks", "knowledge_chunks")
"""Tables of what people themselves said or brought; what is in the others is made of it."""


async def rows_naming(connection: AsyncConnection, user: str) -> dict[str, int]:
    """How many rows of each table are the person's, or name them as who said or did it; none is left out."""
    sought = {user, user_key(user), f"dm:{user}"}
    found = {}
    for table, about in COLUMNS.items():
        told = [_equals(table, column, sought) for column in about.names]
        if told and (count := await _count(connection, table, told)):
            found[table] = count
    return found


async def rows_saying(
    connection: AsyncConnection, texts: Collection[str], tables: Collection[str] = tuple(COLUMNS)
) -> dict[str, int]:
    """How many rows of each table hold one of these texts word for word."""
    found = {}
    for table in tables:
        told = [_contains(table, column, text) for column in COLUMNS[table].texts for text in texts]
        if told and (count := await _count(connection, table, told)):
            found[table] = count
    return found


async def _count(connection: AsyncConnection, table: str, conditions: Iterable[ColumnElement[bool]]) -> int:
    query = select(func.count()).select_from(metadata.tables[table]).where(or_(*conditions))
    return int((await connection.execute(query)).scalar_one())


def _equals(table: str, column: str, sought: Collection[str]) -> ColumnElement[bool]:
    held = metadata.tables[table].c[column]
    if column == "owners":  # a list, kept as JSON
        return or_(*(cast(held, String).contains(json.dumps(name), autoescape=True) for name in sought))
    return held.in_(sought)


def _contains(table: str, column: str, text: str) -> ColumnElement[bool]:
    held = cast(metadata.tables[table].c[column], String)
    said = text[:LONGEST_SOUGHT]
    spellings = {said, json.dumps(said)[1:-1]}  # as it is, and as JSON has it
    return or_(*(held.contains(spelling, autoescape=True) for spelling in spellings))
