"""Pending calls to a client's own tools, stored with the message, and the earlier calls to our tools."""

from collections.abc import Collection
from typing import Any, NamedTuple

from sqlalchemy import exists, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.sql.engine import Database
from memory.sql.messages.message_rows import is_visible
from memory.sql.rests_on import let_go, record
from memory.sql.tables import hidden, messages, rests_on

_SOURCE = rests_on.c.source_id
_REPEATS_HIDDEN = exists().where(
    rests_on.c.derived_id == messages.c.id,
    hidden.c.row_id.in_([_SOURCE, _SOURCE + " user:" + messages.c.user_id, _SOURCE + " " + messages.c.place]),
)
"""True if a source of the message's calls is hidden from its author."""


async def store_calls(
    connection: AsyncConnection, message: str, calls: Any | None, sources: Collection[str] = ()
) -> None:
    """Store the calls that a message waits for, and the `sources` they were written from, in the caller's
    transaction. None removes the calls. A forgotten message gets no calls."""
    waiting = update(messages).where(messages.c.id == message, is_visible())
    await connection.execute(waiting.values(client_items=calls))
    await let_go(connection, [message])
    await record(connection, message, sources, "found")


class WaitingCalls(NamedTuple):
    items: Any
    """The calls and results, as JSON values."""
    sources: frozenset[str]
    """The ids of the sources that the calls were written from."""


async def stored_calls(database: Database, message: str) -> WaitingCalls | None:
    """Return the calls that a message waits for. None if it is answered or a source of them is hidden."""
    where = (messages.c.id == message, messages.c.client_items.is_not(None), is_visible(), ~_REPEATS_HIDDEN)
    sources = select(_SOURCE).where(rests_on.c.derived_id == message, rests_on.c.how == "found")
    async with database.read() as connection:
        if (items := await connection.scalar(select(messages.c.client_items).where(*where))) is None:
            return None
        return WaitingCalls(items, frozenset(await connection.scalars(sources)))
