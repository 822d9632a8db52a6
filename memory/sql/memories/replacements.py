"""Store which memory replaced which for which owner, and compute from it which links are active.

A link, which is a memory and an owner, is active if it is not hidden, its memory has not expired, and no
replacement of it for this owner still counts. A replacement counts

- `WHILE_IT_HOLDS`: until the newer fact expires, is hidden, or is taken back;
- `PAST_ITS_EXPIRY`: the same, but also after it has expired, because it corrected the older one on purpose;
- `ALWAYS`: for good, because the older fact was never active, or was taken back.

The table holds the transitive closure, so a query needs no recursion. Each pair lasts as its last step does.
"""

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from functools import cache
from typing import Any, Literal

from sqlalchemy import ColumnElement, and_, bindparam, delete, exists, or_, select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.sql.hidden import is_hidden, parts
from memory.sql.tables import Utc, memories, memory_owners, replacements

Lasts = Literal["while it holds", "past its expiry", "always"]
Link = tuple[str, str]
"""A memory's id and an owner."""
WHILE_IT_HOLDS: Lasts = "while it holds"
PAST_ITS_EXPIRY: Lasts = "past its expiry"
ALWAYS: Lasts = "always"
TOLD_AGAIN = "told again"
"""The reason of a replacement if a fact is stated again in the same words."""
NOW = bindparam("now", type_=Utc())
"""The time at which expiry is tested: a parameter of each statement that tests it."""


@cache  # a condition takes longer to build than to run
def unexpired(of: Any = memories) -> ColumnElement[bool]:
    """Match memories that have not expired at the parameter `now`."""
    return or_(of.c.expires_at.is_(None), of.c.expires_at > NOW)


_newer = memories.alias("replacing")
_replaced = replacements.alias("replaced")


@cache
def still_replaces(pairs: Any = replacements) -> ColumnElement[bool]:
    """Match replacements that still count, by the rules in the module's docstring."""
    hidden = is_hidden("link", pairs.c.new_id + " " + pairs.c.owner)
    lives = exists().where(_newer.c.id == pairs.c.new_id, unexpired(_newer))
    lasts = or_(pairs.c.lasts == PAST_ITS_EXPIRY, lives)
    return or_(pairs.c.lasts == ALWAYS, and_(~hidden, lasts))


def is_replaced(id: Any, owner: Any, *, but: Any = None) -> ColumnElement[bool]:
    """Match if a memory other than `but` replaces the memory with this id for this owner."""
    these = [_replaced.c.old_id == id, _replaced.c.owner == owner]
    these += [] if but is None else [_replaced.c.new_id != but]
    return exists().where(*these, still_replaces(_replaced))


def holds(id: Any, owner: Any, *, but: Any = None) -> ColumnElement[bool]:
    """Match if the memory is neither hidden nor replaced for the owner, except by `but`. Ignores expiry."""
    return and_(~is_hidden("link", id + " " + owner), ~is_replaced(id, owner, but=but))


@cache
def is_active(links: Any = memory_owners) -> ColumnElement[bool]:
    """Match links that are neither hidden nor replaced; see `holds`."""
    return holds(links.c.memory_id, links.c.owner)


_REPLACE = text(
    """
    INSERT INTO replacements (old_id, new_id, owner, lasts, at, reason)
    SELECT older.id, newer.id, CAST(:owner AS TEXT), newer.lasts, :at, CAST(:reason AS TEXT)
    FROM (
        SELECT CAST(:old AS VARCHAR(36)) AS id
        UNION SELECT old_id FROM replacements WHERE new_id = :old AND owner = :owner
    ) AS older
    CROSS JOIN (
        SELECT CAST(:new AS VARCHAR(36)) AS id, CAST(:lasts AS TEXT) AS lasts
        UNION SELECT new_id, lasts FROM replacements WHERE old_id = :new AND owner = :owner
    ) AS newer
    WHERE older.id <> newer.id
    ON CONFLICT DO NOTHING
    """
).bindparams(bindparam("at", type_=Utc()))


async def replace(
    connection: AsyncConnection,
    olds: Iterable[Link],
    new: str,
    lasts: Lasts,
    reason: str,
    at: datetime,
) -> None:
    """Replace each of these memories by `new`, for its owner."""
    rows = [
        {"old": old, "owner": owner, "new": new, "lasts": lasts, "reason": reason, "at": at}
        for old, owner in sorted(olds)
    ]
    if rows:
        await connection.execute(_REPLACE, rows)


async def replace_same(
    connection: AsyncConnection, news: Mapping[str, str], owners: Collection[str], now: datetime
) -> None:
    """Replace the owners' facts that have the same words as `news`, new ids by content key."""
    if not owners:
        return
    same = (memory_owners.c.owner.in_(owners), memory_owners.c.content_key.in_(news))
    found = (await connection.execute(select(memory_owners).where(*same))).all()
    for key, new in news.items():
        olds = [
            (row.memory_id, row.owner) for row in found if row.content_key == key and row.memory_id != new
        ]
        await replace(connection, olds, new, WHILE_IT_HOLDS, TOLD_AGAIN, now)


async def replaced_by(connection: AsyncConnection, links: Collection[Link]) -> set[Link]:
    """Return the links that these links have replaced."""
    found = set[Link]()
    for part in parts(id for id, _ in links):
        pairs = await connection.execute(select(replacements).where(replacements.c.new_id.in_(part)))
        found |= {(row.old_id, row.owner) for row in pairs if (row.new_id, row.owner) in links}
    return found


async def drop_replacements(connection: AsyncConnection, links: Collection[Link]) -> None:
    """Delete the replacements by these links, which are themselves deleted, except those that last
    `ALWAYS`."""
    for id in sorted({id for id, _ in links}):
        owners = [owner for one, owner in links if one == id]
        theirs = replacements.c.new_id == id, replacements.c.owner.in_(owners)
        await connection.execute(delete(replacements).where(*theirs, replacements.c.lasts != ALWAYS))
