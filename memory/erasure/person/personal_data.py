"""Declares which columns can hold personal data. An erasure verifies itself with this declaration.

A test requires each column of each table to be declared here, or in the test as free of personal data. So
nobody adds a column without deciding. Bodies of traces are compressed; they are deleted with their traces.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import ColumnElement, String, cast, func, or_, select
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.audience import user_key
from memory.sql.tables import metadata

LONGEST_SOUGHT = 200
"""How many characters of a text are searched for: enough to recognise it."""


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of a table that hold personal data."""

    names: tuple[str, ...] = ()
    """Columns with a person's id, an owner key (``user:U``), or the name of a conversation."""
    texts: tuple[str, ...] = ()
    """Columns with statements by people or about them."""


COLUMNS: Mapping[str, Columns] = {
    "users": Columns(names=("id",)),
    "conversations": Columns(names=("id", "user_id")),
    "messages": Columns(names=("conversation_id", "user_id"), texts=("author", "text", "client_items")),
    "speakers": Columns(names=("owner",), texts=("author",)),
    "active_conversations": Columns(names=("conversation_id", "owner"), texts=("summary",)),
    "context_entries": Columns(names=("user_id",), texts=("item", "value")),
    "memories": Columns(names=("user_id",), texts=("content", "subjects")),
    "memory_owners": Columns(names=("owner",), texts=("reason",)),
    "session_memories": Columns(names=("conversation_id",)),
    "memory_aliases": Columns(names=("owner",), texts=("name", "other")),
    "memory_tags": Columns(texts=("tag",)),
    "forgotten": Columns(names=("user_id",), texts=("payload",)),
    "memory_updates": Columns(names=("user_id", "owners"), texts=("reason",)),
    "tasks": Columns(names=("user_id",), texts=("description",)),
    "knowledge_documents": Columns(names=("owner",), texts=("path", "title")),
    "knowledge_chunks": Columns(texts=("heading", "text")),
    "api_keys": Columns(names=("user_id",), texts=("name",)),
    "places": Columns(names=("changed_by",)),
    "traces": Columns(names=("user_id", "conversation_id"), texts=("said", "reply", "error")),
    "erasures": Columns(names=("user_id",), texts=("sought",)),
    "erasure_items": Columns(names=("user_id",)),
    "figures": Columns(names=("user_id",)),
    "work": Columns(names=("user_id", "about"), texts=("payload", "last_error")),
}

LISTS = frozenset({"erasures", "erasure_items"})
"""The list of a running erasure, which names the person until it is verified."""

SOURCES = ("messages", "memories", "context_entries", "tasks", "knowledge_chunks")
"""Tables of people's own statements. The texts in the other tables are derived from these."""


DERIVED = COLUMNS.keys() - set(SOURCES) - LISTS


async def rows_naming(
    connection: AsyncConnection, user: str, without: Collection[str] = ()
) -> dict[str, int]:
    """How many rows of each table, but those `without`, belong to the person or name them as the author;
    without zeros."""
    names = {user, user_key(user), f"dm:{user}"}
    conditions = {
        table: [_equals(table, column, names) for column in columns.names]
        for table, columns in COLUMNS.items()
        if table not in without
    }
    return await _count(connection, conditions)


async def rows_containing(
    connection: AsyncConnection, texts: Collection[str], tables: Collection[str] = tuple(COLUMNS)
) -> dict[str, int]:
    """How many rows of each table contain one of these texts word for word; without zeros."""
    conditions = {
        table: [_contains(table, column, text) for column in COLUMNS[table].texts for text in texts]
        for table in tables
    }
    return await _count(connection, conditions)


async def live(connection: AsyncConnection, texts: Collection[str]) -> set[str]:
    """Which of these texts are part of what others keep, in any letter case."""
    found = set()
    for text in texts:
        conditions = {
            table: [_contains(table, column, text) for column in (*columns.names, *columns.texts)]
            for table, columns in COLUMNS.items()
            if table not in LISTS | {"traces", "work"}
        }
        if await _count(connection, conditions):
            found.add(text)
    return found


async def _count(
    connection: AsyncConnection, conditions: Mapping[str, Sequence[ColumnElement[bool]]]
) -> dict[str, int]:
    found = {}
    for table, any_of in conditions.items():
        if any_of:
            query = select(func.count()).select_from(metadata.tables[table]).where(or_(*any_of))
            if count := (await connection.execute(query)).scalar_one():
                found[table] = count
    return found


def _equals(table: str, column: str, names: Collection[str]) -> ColumnElement[bool]:
    field = metadata.tables[table].c[column]
    if column == "owners":  # a JSON list
        return or_(*(cast(field, String).contains(json.dumps(name), autoescape=True) for name in names))
    return field.in_(names)


def _contains(table: str, column: str, text: str) -> ColumnElement[bool]:
    field = cast(metadata.tables[table].c[column], String)
    start = text[:LONGEST_SOUGHT]
    spellings = {start, json.dumps(start)[1:-1]}  # plain, and escaped as in JSON
    return or_(*(field.contains(spelling, autoescape=True) for spelling in spellings))
