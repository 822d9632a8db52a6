"""Hide rows: while a forgetting names a row, no read returns it. It is shown again or purged later.

Undoing a forgetting deletes its entries, so overlapping ones can be undone in any order. A row of `hidden`
names:

- `link`: a memory's link to an owner (`link_id`). Memories that it had superseded are active meanwhile.
- `message`, `task`, `entry`: a row of that kind.
- `summary`: the former id of a summary that was emptied.
- `told`: a message or profile entry that is withdrawn from its place. Its author can still read it.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime
from itertools import islice
from typing import Any, Literal

from sqlalchemy import ColumnElement, delete, exists, func, insert, or_, select
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.process.pace import unhurried
from memory.process.spans import new_id
from memory.sql.engine import Database
from memory.sql.tables import context_entries, forgettings, hidden, memory_owners, messages, tasks

Kind = Literal["link", "message", "told", "task", "entry", "summary"]
Why = Literal["forgotten", "edited", "private", "erased", "old"]
Rows = Mapping[Kind, Collection[str]]
IDS_AT_ONCE = 500
"""Ids in one statement."""


def link_id(memory: str, owner: str) -> str:
    return f"{memory} {owner}"


def is_hidden(kind: Kind, id: ColumnElement[str]) -> ColumnElement[bool]:
    """Match if a forgetting hides the row of this kind: one look-up in the primary key."""
    return exists().where(hidden.c.row_id == id, hidden.c.kind == kind)


def _of_link(links: Any) -> ColumnElement[str]:
    key: ColumnElement[str] = links.c.memory_id + " " + links.c.owner
    return key


def link_is_hidden(links: Any = memory_owners) -> ColumnElement[bool]:
    """Match hidden links: of `memory_owners`, or an alias of it."""
    return is_hidden("link", _of_link(links))


async def ended(database: Database, by: datetime) -> list[str]:
    """Return the forgettings that can no longer be undone at this time and are not purged yet."""
    return [row.id for row in await database.rows(select(forgettings.c.id).where(forgettings.c.until <= by))]


MESSAGE_IS_HIDDEN = is_hidden("message", messages.c.id)
WITHDRAWN = is_hidden("told", messages.c.id)
"""True for messages that were withdrawn from their place; only their author can read them."""
TASK_IS_HIDDEN = is_hidden("task", tasks.c.id)
ENTRY_IS_HIDDEN = is_hidden("entry", context_entries.c.id)
ENTRY_IS_WITHDRAWN = is_hidden("told", context_entries.c.id)


async def begin(
    connection: AsyncConnection,
    person: str,
    why: Why,
    now: datetime,
    until: datetime | None,
    named: str | None = None,
) -> str:
    """Begin a forgetting and return its id. Its rows are purged at `until`; None means never."""
    row = {"id": new_id(), "person": person, "at": now, "until": until, "why": why, "named": named}
    await connection.execute(insert(forgettings).values(row))
    return str(row["id"])


async def hide(connection: AsyncConnection, forgetting: str, rows: Rows) -> None:
    """Add these rows to the forgetting."""
    for kind, ids in rows.items():
        for part in parts(ids):
            entries = [{"forgetting_id": forgetting, "kind": kind, "row_id": id} for id in part]
            await connection.execute(insert(hidden), entries)


async def rows_of(connection: AsyncConnection, forgettings: Collection[str]) -> dict[Kind, set[str]]:
    """Return the rows that these forgettings hide."""
    found: dict[Kind, set[str]] = {}
    query = select(hidden.c.kind, hidden.c.row_id).where(hidden.c.forgetting_id.in_(forgettings))
    async for row in unhurried(await connection.execute(query)):
        found.setdefault(row.kind, set()).add(row.row_id)
    return found


async def show(
    connection: AsyncConnection, kind: Kind, ids: Iterable[str], where: ColumnElement[bool] | None = None
) -> None:
    """Delete the entries of these rows, of all forgettings or of those that meet the condition."""
    for part in parts(ids):
        entries = delete(hidden).where(hidden.c.kind == kind, hidden.c.row_id.in_(part))
        await connection.execute(entries if where is None else entries.where(where))


async def still_hidden(connection: AsyncConnection, kind: Kind, ids: Iterable[str]) -> set[str]:
    """Return which of these rows are hidden."""
    found: set[str] = set()
    for part in parts(ids):
        query = select(hidden.c.row_id).where(hidden.c.kind == kind, hidden.c.row_id.in_(part))
        found |= set(await connection.scalars(query))
    return found


_left, _made_private = (
    memory_owners.alias("left"),
    select(forgettings.c.id).where(forgettings.c.why == "private"),
)
_NO_LONGER_SHOWN = (
    link_is_hidden(),
    or_(
        ~exists().where(_left.c.memory_id == memory_owners.c.memory_id, ~link_is_hidden(_left)),
        exists().where(
            hidden.c.row_id == _of_link(memory_owners),
            hidden.c.kind == "link",
            hidden.c.forgetting_id.in_(_made_private),
        ),
    ),
)
"""True for hidden links of a memory if all its links are hidden, or if this link was made private."""


def is_not_to_be_shown(id: ColumnElement[str]) -> ColumnElement[bool]:
    """Match the ids that `hidden_among` would return, by look-ups in indexes."""
    memory = exists().where(memory_owners.c.memory_id == id, *_NO_LONGER_SHOWN)
    return or_(exists().where(hidden.c.row_id == id), memory)


async def hidden_among(connection: AsyncConnection, ids: Iterable[str]) -> set[str]:
    """Return which of these ids may no longer be shown as a source: rows that are hidden or withdrawn from
    their place, and memories with all links hidden or with a link that was made private."""
    found: set[str] = set()
    for part in parts(ids):
        rows = select(hidden.c.row_id).where(hidden.c.row_id.in_(part))
        linked = select(memory_owners.c.memory_id).where(
            memory_owners.c.memory_id.in_(part), *_NO_LONGER_SHOWN
        )
        found |= {*await connection.scalars(rows), *await connection.scalars(linked)}
    return found


async def undoable_until(connection: AsyncConnection, ids: Collection[str], now: datetime) -> datetime | None:
    """Return until when the last forgetting that hides one of these rows can be undone. None if none can."""
    links = select(_of_link(memory_owners)).where(memory_owners.c.memory_id.in_(ids))
    named = (
        hidden.c.forgetting_id == forgettings.c.id,
        or_(hidden.c.row_id.in_(ids), hidden.c.row_id.in_(links)),
    )
    until = select(func.max(forgettings.c.until)).where(forgettings.c.until > now, exists().where(*named))
    found: datetime | None = await connection.scalar(until)
    return found


async def hidden_in(database: Database, ids: Collection[str]) -> set[str]:
    """Call `hidden_among` in a transaction of its own."""
    async with database.read() as connection:
        return await hidden_among(connection, ids)


def parts(ids: Iterable[str]) -> Iterator[list[str]]:
    """Yield the ids, sorted, in lists of at most `IDS_AT_ONCE`. Sorting 100,000 at once would take 80 ms."""
    by_beginning = defaultdict[str, set[str]](set)
    for id in ids:
        by_beginning[id[:2]].add(id)
    ordered = (id for beginning in sorted(by_beginning) for id in sorted(by_beginning[beginning]))
    while part := list(islice(ordered, IDS_AT_ONCE)):
        yield part
